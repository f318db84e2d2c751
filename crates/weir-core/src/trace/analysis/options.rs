//! What is read of a capture.

use super::super::points::Choices;
use crate::units::Span;

/// What is looked at, and how much is kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// Length of an interval of the series.
    pub every: Span,
    /// Connections whose packets are reported one by one.
    pub detail: Selection,
    /// Most packets that are reported for each direction of such a connection.
    pub detail_rows: usize,
    /// Most connections that are distinguished; the packets of later ones are counted only.
    pub connections: usize,
    /// Most rows of the series.
    pub series_rows: usize,
    /// What is left out of connections that were captured at several points, as [`super::Analysis::choices`] found it in a
    /// reading before.
    pub choices: Choices,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            every: Span::from_ms(100),
            detail: Selection::Only(Vec::new()),
            detail_rows: 1 << 20,
            connections: 1 << 18,
            series_rows: 1 << 23,
            choices: Choices::default(),
        }
    }
}

/// Which connections are reported packet by packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Those with these numbers.
    Only(Vec<u32>),
    /// All, as long as there are no more rows than this together, and none beyond. [`super::Analysis::report_only`] says in the end
    /// which matter: so a capture of moderate size is read once.
    UpTo(usize),
}
