//! What all active queue managements share: the frames that wait under them, and what becomes of these.

pub mod codel;
pub mod custom;
pub mod dual_pi2;
pub mod fq_codel;
pub mod pie;
pub mod red;

use std::collections::VecDeque;

use self::codel::Codel;
use self::custom::{Management, Managements};
use self::dual_pi2::DualPi2;
use self::fq_codel::FqCodel;
use self::pie::Pie;
use self::red::Red;
use super::limit::Limit;
use crate::marking::{Ecn, Marker};
use crate::rng::Stream;
use crate::spec;
use crate::spec::MarkingTime;
use crate::spec::aqm::Aqm;
use crate::units::{Bytes, Time};

/// What is reported of a frame to a port under active queue management.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// A number that all frames of a flow share.
    pub flow: u64,
    /// The ECN field of its header, as it arrives.
    pub ecn: Ecn,
    /// Its traffic class, 0 to 7.
    pub class: u8,
    /// Whether it has a payload that may be cut.
    pub trims: bool,
}

/// A frame that a port had taken, and then dropped. It may be the one that was just offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discarded<H> {
    /// The frame.
    pub handle: H,
    /// Whether there was room: the management dropped it early.
    pub early: bool,
}

/// A frame that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting<H> {
    pub(super) handle: H,
    pub(super) size: Bytes,
    pub(super) label: Label,
    pub(super) since: Time,
    pub(super) marked: bool,
}

/// Frames in order.
#[derive(Clone, Debug)]
pub(super) struct Fifo<H> {
    frames: VecDeque<Waiting<H>>,
    pub(super) bytes: u64,
}

impl<H> Fifo<H> {
    pub(super) fn new() -> Fifo<H> {
        Fifo { frames: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn push(&mut self, frame: Waiting<H>) {
        self.bytes += frame.size.count();
        self.frames.push_back(frame);
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// When the first frame came.
    pub(super) fn since(&self) -> Option<Time> {
        self.frames.front().map(|frame| frame.since)
    }
}

/// All frames that wait, and those that do not any more although they were not sent.
#[derive(Clone, Debug)]
pub(super) struct Backlog<H> {
    pub(super) frames: u64,
    pub(super) bytes: u64,
    /// The largest frame that came.
    pub(super) largest: u64,
    /// Those that the caller has not taken yet.
    discarded: VecDeque<Discarded<H>>,
    dropped: Dropped,
}

/// What was dropped since the port counted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) frames: u64,
    pub(super) bytes: u64,
}

impl<H: Copy> Backlog<H> {
    fn new() -> Backlog<H> {
        Backlog { frames: 0, bytes: 0, largest: 0, discarded: VecDeque::new(), dropped: Dropped::default() }
    }

    fn enter(&mut self, frame: &Waiting<H>) {
        self.frames += 1;
        self.bytes += frame.size.count();
    }

    /// The first of `queue`, which waits no more.
    pub(super) fn take(&mut self, queue: &mut Fifo<H>) -> Option<Waiting<H>> {
        let frame = queue.frames.pop_front()?;
        queue.bytes -= frame.size.count();
        self.frames -= 1;
        self.bytes -= frame.size.count();
        Some(frame)
    }

    /// The management drops a frame that waits no more.
    pub(super) fn drop_early(&mut self, frame: &Waiting<H>) {
        self.discard(frame, true);
    }

    /// There is no room for a frame.
    pub(super) fn drop_full(&mut self, frame: &Waiting<H>) {
        self.discard(frame, false);
    }

    fn discard(&mut self, frame: &Waiting<H>, early: bool) {
        self.discarded.push_back(Discarded { handle: frame.handle, early });
        self.dropped.frames += 1;
        self.dropped.bytes += frame.size.count();
    }
}

/// The queues of a port under active queue management.
#[derive(Debug)]
pub(super) struct Managed<H> {
    discipline: Discipline<H>,
    backlog: Backlog<H>,
}

#[derive(Debug)]
enum Discipline<H> {
    One { queue: Fifo<H>, control: Control },
    FqCodel(FqCodel<H>),
    DualPi2(DualPi2<H>),
}

/// What manages a single queue.
#[derive(Debug)]
enum Control {
    Nothing,
    Codel(Codel),
    Pie(Pie),
    Red(Red),
    Threshold(Marker),
    Custom(Box<dyn Management>),
}

impl<H: Copy> Managed<H> {
    /// Of what the program has, `others`, the plan has made each once.
    pub(super) fn new(aqm: &Aqm, mut stream: Stream, others: &Managements) -> Managed<H> {
        let control = match aqm {
            Aqm::Codel(spec) => Control::Codel(Codel::new(*spec)),
            Aqm::Pie(spec) => Control::Pie(Pie::new(*spec, stream)),
            Aqm::Red(spec) => Control::Red(Red::new(*spec, stream)),
            Aqm::Threshold(spec) => Control::Threshold(Marker::new(spec, stream)),
            Aqm::FqCodel(spec) => return Managed::by(Discipline::FqCodel(FqCodel::new(*spec, stream.next_u64()))),
            Aqm::DualPi2(spec) => return Managed::by(Discipline::DualPi2(DualPi2::new(*spec))),
            Aqm::Custom(custom) => {
                Control::Custom(others.make(custom, stream).expect("the program has it, and it takes its settings"))
            }
        };
        Managed::by(Discipline::One { queue: Fifo::new(), control })
    }

    fn by(discipline: Discipline<H>) -> Managed<H> {
        Managed { discipline, backlog: Backlog::new() }
    }

    /// The queue of a class.
    pub(super) fn of(discipline: &spec::Discipline, stream: Stream, others: &Managements) -> Managed<H> {
        match discipline {
            spec::Discipline::DropTail { marking: Some(marking), .. } => {
                Managed::new(&Aqm::Threshold(*marking), stream, others)
            }
            spec::Discipline::Managed { aqm, .. } => Managed::new(aqm, stream, others),
            spec::Discipline::DropTail { marking: None, .. } | spec::Discipline::Classes(_) => {
                Managed::by(Discipline::One { queue: Fifo::new(), control: Control::Nothing })
            }
        }
    }

    /// A frame comes. With `serves` it will be asked for at once, so that it needs no room.
    pub(super) fn enqueue(&mut self, frame: Waiting<H>, limit: Limit, serves: bool) {
        let backlog = &mut self.backlog;
        let has_room = serves || limit.admits(backlog.frames + 1, backlog.bytes + frame.size.count());
        backlog.largest = backlog.largest.max(frame.size.count());
        match &mut self.discipline {
            Discipline::FqCodel(fq) => {
                backlog.enter(&frame);
                fq.enqueue(frame);
                if !has_room {
                    fq.shed(backlog, limit);
                }
            }
            _ if !has_room => backlog.drop_full(&frame),
            Discipline::One { queue, control } => {
                let admitted = match control {
                    Control::Pie(pie) => pie.admit(frame, backlog),
                    Control::Red(red) => red.admit(frame, backlog),
                    Control::Custom(custom) => custom::admit(custom.as_mut(), frame, backlog),
                    Control::Nothing | Control::Codel(_) | Control::Threshold(_) => Some(frame),
                };
                let Some(mut frame) = admitted else { return };
                backlog.enter(&frame);
                if let Control::Threshold(marker) = control {
                    let strikes = !serves && marker.on_frame(MarkingTime::Arrival, Bytes::new(backlog.bytes));
                    frame.marked = strikes && frame.label.ecn.is_capable();
                }
                queue.push(frame);
            }
            Discipline::DualPi2(dual) => {
                backlog.enter(&frame);
                dual.enqueue(frame);
            }
        }
    }

    /// Whether a frame of so many bytes finds room.
    pub(super) fn has_room(&self, size: Bytes, limit: Limit) -> bool {
        limit.admits(self.backlog.frames + 1, self.backlog.bytes + size.count())
    }

    /// Takes the last frame that waits in plain order, if `may` says so.
    pub(super) fn take_last(&mut self, may: impl Fn(&Waiting<H>) -> bool) -> Option<Waiting<H>> {
        let Discipline::One { queue, control: Control::Nothing | Control::Threshold(_) } = &mut self.discipline else {
            return None;
        };
        queue.frames.back().filter(|frame| may(frame))?;
        let frame = queue.frames.pop_back()?;
        queue.bytes -= frame.size.count();
        self.backlog.frames -= 1;
        self.backlog.bytes -= frame.size.count();
        Some(frame)
    }

    /// The next frame, if any waits.
    pub(super) fn dequeue(&mut self, now: Time) -> Option<Waiting<H>> {
        let backlog = &mut self.backlog;
        let (queue, control) = match &mut self.discipline {
            Discipline::FqCodel(fq) => return fq.dequeue(now, backlog),
            Discipline::DualPi2(dual) => return dual.dequeue(now, backlog),
            Discipline::One { queue, control } => (queue, control),
        };
        match control {
            Control::Codel(codel) => return codel.dequeue(now, queue, backlog),
            Control::Custom(custom) => return custom::dequeue(custom.as_mut(), now, queue, backlog),
            Control::Pie(pie) => pie.update_until(now, backlog),
            Control::Nothing | Control::Red(_) | Control::Threshold(_) => {}
        }
        let mut frame = backlog.take(queue)?;
        match control {
            Control::Pie(pie) => pie.on_departure(now, &frame, backlog),
            Control::Red(red) => red.on_departure(now, backlog.bytes),
            Control::Threshold(marker) => {
                let strikes = marker.on_frame(MarkingTime::Departure, Bytes::new(backlog.bytes));
                frame.marked |= strikes && frame.label.ecn.is_capable();
            }
            Control::Nothing | Control::Codel(_) | Control::Custom(_) => {}
        }
        Some(frame)
    }

    pub(super) fn frames(&self) -> u64 {
        self.backlog.frames
    }

    pub(super) fn bytes(&self) -> u64 {
        self.backlog.bytes
    }

    /// What was dropped since it was asked last.
    pub(super) fn count_dropped(&mut self) -> Dropped {
        std::mem::take(&mut self.backlog.dropped)
    }

    /// Drops all that waits; the caller has it.
    pub(super) fn clear(&mut self) -> Vec<H> {
        let backlog = &mut self.backlog;
        let mut gone = Vec::new();
        let mut empty = |queue: &mut Fifo<H>| {
            while let Some(frame) = backlog.take(queue) {
                backlog.dropped.frames += 1;
                backlog.dropped.bytes += frame.size.count();
                gone.push(frame.handle);
            }
        };
        match &mut self.discipline {
            Discipline::One { queue, .. } => empty(queue),
            Discipline::DualPi2(dual) => dual.queues_mut().into_iter().for_each(empty),
            Discipline::FqCodel(fq) => fq.queues_mut().for_each(empty),
        }
        gone
    }

    pub(super) fn take_discarded(&mut self) -> Option<Discarded<H>> {
        self.backlog.discarded.pop_front()
    }

    /// All that waits.
    pub(super) fn waiting(&self) -> impl Iterator<Item = H> + '_ {
        let (some, flows) = match &self.discipline {
            Discipline::One { queue, .. } => ([Some(queue), None], None),
            Discipline::DualPi2(dual) => (dual.queues().map(Some), None),
            Discipline::FqCodel(fq) => ([None, None], Some(fq.queues())),
        };
        let all = some.into_iter().flatten().chain(flows.into_iter().flatten());
        all.flat_map(|queue| &queue.frames).map(|frame| frame.handle)
    }
}
