//! Frames of ports, written as pcapng.
//!
//! A frame is noted when its transmission begins, with what it carries; the file is made at the end of the run. Only the
//! headers are kept. A port that works ahead notes its frames early: they are put in order of time first.

use weir_core::columns::Named;
use weir_core::ethernet::pfc::Says;
use weir_core::ethernet::{bcn, reaction::Feedback};
use weir_core::queue::ClassSet;
use weir_core::spec;
use weir_core::tcp::{Ecn, Flags, Segment};
use weir_core::trace::frames::{Carried, Sketch};
use weir_core::trace::{self, Writer};
use weir_core::units::{Bytes, Time};

use crate::frames::{Body, Frame, Kind};
use crate::plan::Plan;
use crate::totals::{CaptureFile, ControlKind};

/// A capture in the making.
#[derive(Debug)]
pub(crate) struct Tap {
    /// Its place among the captures of the spec.
    place: usize,
    from: Time,
    to: Time,
    most: usize,
    noted: Vec<Noted>,
    /// Frames that were dropped from `noted`, and from when on none is kept.
    left_out: u64,
    full_from: Time,
}

/// A frame that was seen.
#[derive(Clone, Copy, Debug)]
struct Noted {
    at: Time,
    interface: u32,
    flow: u32,
    /// What distinguish frames without a transport.
    born: Time,
    size: Bytes,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Datagram(Ecn),
    Segment(Segment),
    /// Of all data or of classes, with the quanta.
    Pause(Says, u16),
    /// The congestion point, and what it says.
    Notification(u32, Feedback),
}

/// Bytes of a frame that are kept: Ethernet, IPv4, and TCP with all its options take 94 B.
const SNAP: usize = 96;
/// PAUSE without an end.
const LONGEST_PAUSE: u16 = u16::MAX;

impl Tap {
    /// What `place`, the capture `spec`, asks for.
    pub(crate) fn new((place, spec): (usize, &spec::Capture)) -> Tap {
        Tap {
            place,
            from: spec.from_ps,
            to: spec.to_ps,
            most: spec.frames as usize,
            noted: Vec::new(),
            left_out: 0,
            full_from: Time::NEVER,
        }
    }

    /// The transmission of `frame` begins at `port`, which is interface `interface` of the file.
    pub(crate) fn note(&mut self, at: Time, interface: u32, frame: &Frame, body: Option<Body>, port: u32, plan: &Plan) {
        if at < self.from || at >= self.to {
            return;
        }
        if at >= self.full_from {
            self.left_out += 1;
            return;
        }
        let what = match body {
            Some(Body::Tcp(segment)) => What::Segment(segment),
            Some(Body::Pause(says)) => What::Pause(says, quanta(plan, port)),
            Some(Body::Notification { point, feedback }) => What::Notification(point, feedback),
            Some(Body::Token(_) | Body::Rdma(_) | Body::Probe(_) | Body::Ask(_)) | None
                if frame.kind == Kind::Marked =>
            {
                What::Datagram(Ecn::Ce)
            }
            Some(Body::Token(_) | Body::Rdma(_) | Body::Probe(_) | Body::Ask(_)) | None
                if plan.is_capable(frame.flow) =>
            {
                What::Datagram(Ecn::Ect0)
            }
            Some(Body::Token(_) | Body::Rdma(_) | Body::Probe(_) | Body::Ask(_)) | None => What::Datagram(Ecn::NotEct),
        };
        self.noted.push(Noted { at, interface, flow: frame.flow, born: frame.born, size: frame.size(), what });
        if self.noted.len() >= self.most.saturating_mul(2) {
            self.cut();
        }
    }

    /// Puts what was noted in order, and drops what is too much.
    fn cut(&mut self) {
        self.noted.sort_by_key(|noted| (noted.at, noted.interface));
        if let Some(first) = self.noted.get(self.most) {
            self.full_from = first.at;
            self.left_out += (self.noted.len() - self.most) as u64;
            self.noted.truncate(self.most);
        }
    }

    /// The file.
    pub(crate) fn file(mut self, plan: &Plan) -> CaptureFile {
        self.cut();
        let spec = &plan.spec.record.captures[self.place];
        let taps: Vec<trace::Tap<'_>> = spec
            .ports
            .iter()
            .map(|&port| &plan.topology.ports[port as usize])
            .map(|port| trace::Tap { name: &port.name, rate: port.link.rate_bps, snap_bytes: SNAP as u32 })
            .collect();
        let mut written = vec![0; taps.len()];
        let mut bytes = Vec::with_capacity(SNAP);
        let out = Vec::with_capacity(self.noted.len() * (SNAP + 32));
        let mut write = |out| {
            let mut writer = Writer::new(out, "weirlab", &taps)?;
            for noted in &self.noted {
                let length = noted.sketch(plan, spec.ports[noted.interface as usize], &mut bytes);
                writer.frame(noted.interface, noted.at, &bytes, length)?;
                written[noted.interface as usize] += 1;
            }
            for (interface, &frames) in (0..).zip(&written) {
                // What was left out is not known by interface: it is reported with the first.
                let left_out = if interface == 0 { self.left_out } else { 0 };
                writer.statistics(interface, frames + left_out, left_out)?;
            }
            writer.finish()
        };
        let content = write(out).expect("memory takes all that is written");
        CaptureFile { name: spec.name.clone(), frames: self.noted.len() as u64, left_out: self.left_out, content }
    }
}

impl Noted {
    /// Puts its headers into `bytes`; its length without check sequence.
    fn sketch(&self, plan: &Plan, port: u32, bytes: &mut Vec<u8>) -> u32 {
        let link = &plan.topology.ports[port as usize];
        let flow = plan.flows.get(self.flow as usize);
        let returns = flow.is_some_and(|flow| flow.returns);
        let segment = if let What::Segment(segment) = self.what {
            on_the_wire(&segment, plan, self.flow)
        } else {
            trace::Segment::default()
        };
        let (mut from, mut to) = flow.map_or((link.from, link.to), |flow| (flow.from, flow.to));
        let (mut id, mut ecn) = (identification(self.born), Ecn::NotEct);
        let carried = match self.what {
            What::Datagram(field) => {
                ecn = field;
                Carried::Datagram { number: self.born.ps() }
            }
            What::Segment(sent) => {
                id = sent.id;
                ecn = sent.ecn;
                Carried::Segment(&segment)
            }
            What::Pause(says, quanta) => {
                (from, to) = (link.from, link.to);
                match says {
                    Says { stop: ClassSet::ALL, .. } => Carried::Pause { quanta },
                    Says { go: ClassSet::ALL, .. } => Carried::Pause { quanta: 0 },
                    Says { stop, go } => {
                        let mut timers = [None; 8];
                        go.list().for_each(|class| timers[usize::from(class)] = Some(0));
                        stop.list().for_each(|class| timers[usize::from(class)] = Some(quanta));
                        Carried::ClassPause { timers }
                    }
                }
            }
            What::Notification(point, feedback) => {
                // A CNP comes from the receiver, all else from the switch that measures.
                let measures = plan.topology.ports.get(point as usize).map_or(link.from, |port| port.from);
                (from, to) = (if feedback == Feedback::Cnp { to } else { measures }, from);
                let value = value(feedback).to_bits();
                Carried::Control {
                    words: [ControlKind::from(feedback).id(), point, (value >> 32) as u32, value as u32],
                }
            }
        };
        let flow = if returns { self.flow - 1 } else { self.flow };
        let sketch = Sketch { from, to, flow, forward: !returns, size: self.size, ecn: ecn.bits(), id, carried };
        sketch.draw(bytes, SNAP)
    }
}

/// What a notification says, as a number.
fn value(feedback: Feedback) -> f64 {
    match feedback {
        Feedback::Bcn(bcn::Feedback::Change(fb) | bcn::Feedback::Max(fb)) => fb,
        Feedback::Qcn(fb) => f64::from(fb.level()),
        Feedback::Bcn(bcn::Feedback::Stop) | Feedback::Cnp => 0.0,
    }
}

/// Identifications of datagrams distinguish them, and do not count them.
fn identification(born: Time) -> u16 {
    (born.ps().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as u16
}

/// For how long PAUSE of the node at `port` holds, as the frame shows it.
fn quanta(plan: &Plan, port: u32) -> u16 {
    let node = plan.topology.ports[port as usize].from as usize;
    let rule = plan.control.as_ref().and_then(|control| control.pausing[node]);
    let by_rule = rule.and_then(|rule| plan.spec.control.pause[rule as usize].quanta);
    let place = plan.control.as_ref().and_then(|control| control.asking[node]);
    let by_buffer = || plan.spec.buffers[place? as usize].flow_control.as_ref()?.quanta;
    by_rule.or_else(by_buffer).unwrap_or(LONGEST_PAUSE)
}

/// A segment with the fields of its header.
fn on_the_wire(segment: &Segment, plan: &Plan, flow: u32) -> trace::Segment {
    let stamped = segment.flags.has(Flags::TIMESTAMPS);
    let syn = segment.flags.has(Flags::SYN);
    let flags = [
        (Flags::FIN, trace::Segment::FIN),
        (Flags::SYN, trace::Segment::SYN),
        (Flags::ACK, trace::Segment::ACK),
        (Flags::ECE, trace::Segment::ECE),
        (Flags::CWR, trace::Segment::CWR),
    ];
    let mut written = trace::Segment {
        seq: segment.seq as u32,
        ack: segment.ack as u32,
        flags: flags.iter().filter(|(flag, _)| segment.flags.has(*flag)).fold(0, |all, (_, bit)| all | bit),
        window: segment.window,
        payload: segment.len,
        mss: if syn { plan.largest_segment(flow, stamped) } else { None },
        window_shift: segment.window_scale,
        sack_permitted: syn && segment.flags.has(Flags::SACK_PERMITTED),
        ae: segment.flags.has(Flags::AE),
        byte_counts: segment.byte_counts(),
        timestamps: stamped.then_some((segment.ts_val, segment.ts_ecr)),
        ..trace::Segment::default()
    };
    for (block, (start, end)) in written.blocks.iter_mut().zip(segment.sacks.blocks(segment.ack)) {
        *block = (start as u32, end as u32);
        written.sacks += 1;
    }
    written
}
