//! What becomes of frames on a link beyond being carried: some links lose frames, and those of some ports are captured.
//!
//! A line that does neither has not the flag `WATCHED`, and costs nothing. What is lost on a link counts when its
//! transmission begins; each direction has its own stream of chance, `link/PORT/loss`.

use weir_core::path::{Loss, LossModel};
use weir_core::queue::{Lane, Offer};
use weir_core::rng::Seed;
use weir_core::units::{Bytes, Time};

use crate::capture::Tap;
use crate::fabric::Fabric;
use crate::frames::{FrameId, Kind};
use crate::line::{ARMED, WATCHED};
use crate::plan::Plan;
use crate::totals::CaptureFile;

/// The watched lines of a network.
#[derive(Debug)]
pub(crate) struct Wires {
    /// By port: its place in `wires`.
    of_port: Vec<u32>,
    wires: Vec<Wire>,
    /// Frames of flows lost on the link behind each place of the routes.
    lost: Vec<u64>,
    /// Control frames lost.
    pub(crate) lost_control: u64,
    taps: Vec<Tap>,
}

#[derive(Debug)]
struct Wire {
    port: u32,
    loss: Option<Loss>,
    /// The capture, and the interface of its file.
    tap: Option<(usize, u32)>,
}

const NOWHERE: u32 = u32::MAX;

impl Wires {
    /// The watched lines of `plan`, if there are any.
    pub(crate) fn new(plan: &Plan, seed: Seed) -> Option<Wires> {
        let ports = &plan.topology.ports;
        let mut wires = Wires {
            of_port: vec![NOWHERE; ports.len()],
            wires: Vec::new(),
            lost: vec![0; plan.route.len()],
            lost_control: 0,
            taps: plan.spec.record.captures.iter().enumerate().map(Tap::new).collect(),
        };
        for (port, spec) in (0..).zip(ports).filter(|(_, spec)| spec.link.loss != LossModel::None) {
            let stream = seed.stream(&format!("link/{}/loss", spec.name));
            wires.wire(port).loss = Some(Loss::new(spec.link.loss, stream));
        }
        for (capture, spec) in plan.spec.record.captures.iter().enumerate() {
            for (interface, &port) in (0..).zip(&spec.ports) {
                wires.wire(port).tap = Some((capture, interface));
            }
        }
        (!wires.wires.is_empty()).then_some(wires)
    }

    fn wire(&mut self, port: u32) -> &mut Wire {
        let place = &mut self.of_port[port as usize];
        if *place == NOWHERE {
            *place = self.wires.len() as u32;
            self.wires.push(Wire { port, loss: None, tap: None });
        }
        &mut self.wires[*place as usize]
    }

    /// The ports of the watched lines.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u32> + '_ {
        self.wires.iter().map(|wire| wire.port)
    }

    /// Frames of a flow lost behind the place `leg` of the routes.
    pub(crate) fn lost(&self, leg: usize) -> u64 {
        self.lost[leg]
    }

    /// There are so many places of the ways now.
    pub(crate) fn make_room(&mut self, legs: usize) {
        self.lost.resize(legs.max(self.lost.len()), 0);
    }

    /// The files of all captures.
    pub(crate) fn captures(&mut self, plan: &Plan) -> Vec<CaptureFile> {
        std::mem::take(&mut self.taps).into_iter().map(|tap| tap.file(plan)).collect()
    }
}

impl Fabric<'_> {
    /// The transmission of a frame begins, and ends at `end`. Whether the frame will arrive; a lost one is gone.
    #[inline]
    pub(crate) fn sets_out(&mut self, port: u32, id: FrameId, end: Time) -> bool {
        !self.lines[port as usize].has(WATCHED) || self.watch_transmission(port, id, end)
    }

    #[cold]
    fn watch_transmission(&mut self, port: u32, id: FrameId, end: Time) -> bool {
        let Some(wires) = &mut self.wires else { return true };
        let wire = &mut wires.wires[wires.of_port[port as usize] as usize];
        let frame = &self.frames[id];
        if let Some((capture, interface)) = wire.tap {
            let begin = end - self.lines[port as usize].port.transmission(frame.size());
            let body = (!matches!(frame.kind, Kind::Data | Kind::InBurst | Kind::Marked)).then(|| self.frames.body(id));
            wires.taps[capture].note(begin, interface, frame, body, port, self.plan);
        }
        if !wire.loss.as_mut().is_some_and(Loss::lose) {
            return true;
        }
        match frame.kind {
            Kind::Data | Kind::InBurst | Kind::Marked | Kind::Loaded => wires.lost[frame.leg as usize] += 1,
            Kind::Notification | Kind::Pause => wires.lost_control += 1,
        }
        self.frames.free(id);
        false
    }

    /// As [`Fabric::launch`], where the line may be watched.
    pub(crate) fn launch_watched(&mut self, port: u32, id: FrameId, end: Time) {
        if self.sets_out(port, id, end) {
            self.launch(port, id, end);
        }
    }

    /// As [`Fabric::launch_watched`], but the event of the link is left to the caller.
    #[inline]
    pub(crate) fn append_watched(&mut self, port: u32, id: FrameId, end: Time) {
        if self.sets_out(port, id, end) {
            self.lines[port as usize].append(&mut self.frames, id, end);
        }
    }

    /// As [`Fabric::offer_plain`], where the line may be watched.
    pub(crate) fn offer_watched(&mut self, port: u32, id: FrameId, size: Bytes, lane: Lane) -> Offer {
        if !self.lines[port as usize].has(WATCHED) {
            return self.offer_plain(port, id, size, lane);
        }
        let line = &mut self.lines[port as usize];
        let became = line.port.offer(self.now, id, size, lane);
        match became {
            Offer::Sent { end } => self.launch_watched(port, id, end),
            Offer::Waits => {
                if let Some(due) = line.arm() {
                    self.agenda.push(due, port);
                }
            }
            Offer::Dropped => self.drop_frame(id),
        }
        became
    }

    /// As [`Fabric::wake_plain`], where the line may be watched.
    pub(crate) fn wake_watched(&mut self, port: u32) {
        if !self.lines[port as usize].has(WATCHED) {
            return self.wake_plain(port);
        }
        let line = &mut self.lines[port as usize];
        line.flags &= !ARMED;
        if let Some(sent) = line.port.wake(self.now) {
            match sent.lane {
                Lane::Data => self.launch_watched(port, sent.handle, sent.end),
                Lane::Control => self.launch_control(port, sent.handle, sent.end),
            }
        }
        if let Some(due) = self.lines[port as usize].arm() {
            self.agenda.push(due, port);
        }
    }
}
