//! The buffer of a host behind the port that leads to it: the host takes frames out of it no faster than it is served.

use std::collections::VecDeque;

use weir_core::ethernet::pause::Watermarks;
use weir_core::spec::switching::Egress;
use weir_core::units::Time;

use super::valve::Valve;
use crate::frames::FrameId;

/// The buffer of a host.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) frames: VecDeque<FrameId>,
    pub(crate) bytes: u64,
    pub(crate) valve: Valve,
    pub(crate) marks: Watermarks<u64>,
    /// When the first frame is to be taken, as entered last.
    pub(crate) due: Time,
}

impl Buffer {
    pub(crate) fn new(egress: &Egress, valve: Valve) -> Buffer {
        let marks = Watermarks::down_to(egress.xoff_bytes.count(), egress.xon_bytes.count());
        Buffer { frames: VecDeque::new(), bytes: 0, valve, marks, due: Time::NEVER }
    }
}
