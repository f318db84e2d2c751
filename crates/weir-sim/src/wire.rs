//! What becomes of frames on a link beyond being carried: some links lose frames, and those of some ports are captured.
//!
//! Others write into packets what they have sent and what waits there (in-band telemetry). A line that does none of this is not watched, and costs nothing. What is lost on a link counts when its
//! transmission begins; each direction has its own stream of chance, `link/PORT/loss`.

use weir_core::path::{Loss, LossModel};
use weir_core::rng::Seed;

use crate::capture::Tap;
use crate::plan::Plan;
use crate::totals::CaptureFile;

/// The watched lines of a network.
#[derive(Debug)]
pub(crate) struct Wires {
    /// By port: its place in `wires`.
    pub(crate) of_port: Vec<u32>,
    pub(crate) wires: Vec<Wire>,
    /// Control frames lost.
    pub(crate) lost_control: u64,
    pub(crate) taps: Vec<Tap>,
}

#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) port: u32,
    pub(crate) loss: Option<Loss>,
    /// The capture, and the interface of its file.
    pub(crate) tap: Option<(usize, u32)>,
    /// What it has sent, framing counted, if it writes that into packets.
    pub(crate) told: Option<u64>,
}

pub(crate) const NOWHERE: u32 = u32::MAX;

impl Wires {
    /// The watched lines of `plan`, if there are any.
    pub(crate) fn new(plan: &Plan, seed: Seed) -> Option<Wires> {
        let ports = &plan.topology.ports;
        let mut wires = Wires {
            of_port: vec![NOWHERE; ports.len()],
            wires: Vec::new(),
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
        if plan.spec.has_telemetry() {
            let of_switches = (0..).zip(ports).filter(|(_, spec)| !plan.topology().is_host(spec.from));
            of_switches.for_each(|(port, _)| wires.wire(port).told = Some(0));
        }
        (!wires.wires.is_empty()).then_some(wires)
    }

    pub(crate) fn wire(&mut self, port: u32) -> &mut Wire {
        let place = &mut self.of_port[port as usize];
        if *place == NOWHERE {
            *place = self.wires.len() as u32;
            self.wires.push(Wire { port, loss: None, tap: None, told: None });
        }
        &mut self.wires[*place as usize]
    }

    /// The ports of the watched lines.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u32> + '_ {
        self.wires.iter().map(|wire| wire.port)
    }

    /// The files of all captures.
    pub(crate) fn captures(&mut self, plan: &Plan) -> Vec<CaptureFile> {
        std::mem::take(&mut self.taps).into_iter().map(|tap| tap.file(plan)).collect()
    }
}
