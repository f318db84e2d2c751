//! Queues that measure, and the notifications that they send back.

use weir_core::ethernet::bcn::{self, Fate, Tag};
use weir_core::ethernet::qcn;
use weir_core::ethernet::reaction::Feedback;
use weir_core::rng::Stream;
use weir_core::spec::control::{self};
use weir_core::units::Bytes;

use super::host::NO_POINT;

/// A queue that measures, whatever its scheme.
#[derive(Debug)]
pub(crate) enum Point {
    Bcn(bcn::CongestionPoint),
    Qcn(qcn::CongestionPoint),
}

impl Point {
    /// The congestion point of the scheme of `control`.
    pub(crate) fn new(control: &control::Control, stream: Stream) -> Option<Point> {
        if let Some(bcn) = &control.bcn {
            return Some(Point::Bcn(bcn::CongestionPoint::new(&bcn.congestion_point, stream)));
        }
        let qcn = control.qcn.as_ref()?;
        Some(Point::Qcn(qcn::CongestionPoint::new(&qcn.congestion_point, stream)))
    }

    /// A frame with the tag `tag` came to the queue of `port`, `waiting` waits now: the feedback, if it is sampled.
    #[inline]
    pub(crate) fn on_frame(
        &mut self,
        size: Bytes,
        accepted: bool,
        waiting: Bytes,
        tag: u32,
        port: u32,
    ) -> Option<Feedback> {
        let fate = if accepted { Fate::Accepted } else { Fate::Dropped };
        match self {
            Point::Bcn(point) => {
                if !point.on_frame(size, fate) {
                    return None;
                }
                let tag = match tag {
                    NO_POINT => Tag::None,
                    tag if tag == port => Tag::Here,
                    _ => Tag::Elsewhere,
                };
                point.sample(waiting, tag).map(Feedback::Bcn)
            }
            Point::Qcn(point) => {
                if !point.on_frame(size, fate) {
                    return None;
                }
                point.sample(waiting).map(Feedback::Qcn)
            }
        }
    }
}
