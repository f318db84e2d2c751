//! Shared memories, hosts with a queue for each destination, slow outputs.
//!
//! In a network with any of them every host has queues for destinations and every port of a switch is *stored*: what arrives at an instant
//! is stored before anything that leaves then is taken out, and hosts come last. So within an instant frames arrive, in
//! the order of the ports that they come over; then control takes effect; then the ports of switches serve, in order; then
//! hosts generate and send, in order. That is the order of the slots of [`crate::slotted`], with which this
//! engine agrees to the frame where both can run a network.
//!
//! PAUSE by a shared memory travels beside the frames and takes no time of a line.

pub(crate) mod valve;

use std::collections::{BTreeSet, VecDeque};

use weir_core::ethernet::pause::Watermarks;
use weir_core::queue::SharedMemory;
use weir_core::spec::switching::{Egress, MemoryPause, PauseScope, Service};
use weir_core::units::{Bytes, Time};

use self::valve::Valve;
use crate::frames::FrameId;
use crate::plan::Plan;
use crate::totals::MemoryTotals;

/// A PAUSE frame: the least there is.
pub(crate) const PAUSE_BYTES: Bytes = Bytes::new(64);

/// All that is beyond plain queues.
#[derive(Debug)]
pub(crate) struct Switching {
    /// By the port of the host.
    pub(crate) buffers: Vec<Option<Box<Buffer>>>,
    /// By node.
    pub(crate) memories: Vec<Memory>,
    /// By port: bytes that came over it and wait.
    pub(crate) of_input: Vec<u64>,
    /// By port: the watermarks of what came over it and waits.
    pub(crate) input_marks: Vec<Watermarks<u64>>,
    /// By port: when it is asked again to stop.
    pub(crate) repeats: Vec<Time>,
}

impl Switching {
    /// The state of `plan` at time zero, if it has any.
    pub(crate) fn new(plan: &Plan) -> Option<Box<Switching>> {
        if !plan.is_switched() {
            return None;
        }
        let (spec, topology) = (&plan.spec.switching, &plan.topology);
        let mut memories = vec![Memory::new(); topology.nodes.len()];
        for memory in &spec.memories {
            for &node in &memory.nodes {
                let of_node = &mut memories[node as usize];
                (of_node.shared, of_node.pause) = (SharedMemory::new(memory.bytes, memory.alpha), memory.pause);
                if let Some(pause) = memory.pause.filter(|pause| pause.scope == PauseScope::Switch) {
                    of_node.marks = marks_of(&pause);
                }
            }
        }
        for (id, port) in (0..).zip(&topology.ports) {
            memories[port.to as usize].inputs.push(id);
        }
        let ports = topology.ports.len();
        let mut switching = Switching {
            buffers: (0..ports).map(|_| None).collect(),
            memories,
            of_input: vec![0; ports],
            input_marks: vec![Watermarks::NONE; ports],
            repeats: vec![Time::NEVER; ports],
        };
        for (id, port) in (0..).zip(&topology.ports) {
            let pause = switching.memories[port.to as usize].pause;
            if let Some(pause) = pause.filter(|pause| pause.scope == PauseScope::Input) {
                switching.input_marks[id as usize] = marks_of(&pause);
            }
            if let Some(egress) = egress(plan, id) {
                let buffer = Buffer::new(egress, Valve::of_buffer(&services(plan, id), port.link.rate_bps));
                switching.buffers[id as usize ^ 1] = Some(Box::new(buffer));
            }
        }
        Some(Box::new(switching))
    }
}

/// The buffer of a host behind the port that leads to it: the host takes frames out of it no faster than it is served.
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

/// The memory that the output queues of a switch share, and what waits in it.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) shared: SharedMemory,
    pub(crate) pause: Option<MemoryPause>,
    /// Of all that it holds, if that is what PAUSE goes by.
    pub(crate) marks: Watermarks<u64>,
    pub(crate) xoffs: u64,
    /// The ports that lead to the switch.
    pub(crate) inputs: Vec<u32>,
}

impl Memory {
    /// An empty memory without a limit.
    pub(crate) fn new() -> Memory {
        let shared = SharedMemory::new(Bytes::new(u64::MAX), None);
        Memory { shared, pause: None, marks: Watermarks::NONE, xoffs: 0, inputs: Vec::new() }
    }

    /// What it held up to `end`.
    pub(crate) fn totals(&self, node: u32, end: Time) -> MemoryTotals {
        let (most, byte_ps) = self.shared.totals_at(end);
        MemoryTotals { node, max_bytes: most.count(), byte_ps, xoffs: self.xoffs }
    }
}

fn marks_of(pause: &MemoryPause) -> Watermarks<u64> {
    Watermarks::down_to(pause.xoff_bytes.count(), pause.xon_bytes.count())
}

/// The buffer of the host behind `port`, if it has one.
fn egress(plan: &Plan, port: u32) -> Option<&Egress> {
    let host = plan.topology.ports[port as usize].to;
    plan.spec.switching.egress.iter().find(|egress| egress.hosts.contains(&host))
}

/// When `port` is slower, in the order of the spec.
fn services(plan: &Plan, port: u32) -> Vec<Service> {
    plan.spec.switching.services.iter().filter(|service| service.port == port).copied().collect()
}

/// The ports that are slow for a while, and when. One with a buffer behind it is as fast as ever: it is the buffer that is slow.
pub(crate) fn slow_outputs(plan: &Plan) -> impl Iterator<Item = (u32, Vec<Service>)> + '_ {
    let ports: BTreeSet<u32> = plan.spec.switching.services.iter().map(|service| service.port).collect();
    ports.into_iter().filter(|&port| egress(plan, port).is_none()).map(|port| (port, services(plan, port)))
}
