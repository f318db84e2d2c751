//! Buffers of switches that are counted at inputs and outputs, with what their switches ask of neighbours.

use weir_core::ethernet::headroom;
use weir_core::queue::{Buffer, Entered, Part, Passage};
use weir_core::spec;
use weir_core::units::{Bytes, Span, Time};

use super::occupancy::Occupancy;
use crate::boundaries::Boundaries;
use crate::plan::Plan;
use crate::totals::{BufferTotals, InputTotals, Totals};

/// All of them.
#[derive(Debug)]
pub(crate) struct Pools {
    /// By node.
    of_node: Vec<Option<Box<Pooled>>>,
    /// The number of each port among those that lead to the same node.
    numbers: Vec<u32>,
}

/// A switch with such a buffer.
#[derive(Debug)]
pub(crate) struct Pooled {
    pub(crate) buffer: Buffer,
    /// Its place in the spec.
    pub(crate) place: usize,
    /// The ports that lead to it, by number.
    pub(crate) inputs: Vec<u32>,
    /// When each of them is asked again to stop.
    pub(crate) repeats: Vec<Time>,
    /// Its intervals, if they are written down.
    series: Option<Box<Occupancy>>,
}

/// A buffer whose intervals are written down, because a port of its switch is recorded.
pub(crate) struct Recorded<'p> {
    node: u32,
    /// The shortest interval of its ports.
    every: Span,
    pub(crate) parts: Vec<RecordedPart<'p>>,
}

/// A part of it.
pub(crate) struct RecordedPart<'p> {
    pub(crate) node: u32,
    part: Part,
    classes: &'p [u8],
    pub(crate) bytes: Bytes,
}

impl RecordedPart<'_> {
    /// What it is.
    pub(crate) fn word(&self) -> &'static str {
        match self.part {
            Part::Whole => "whole",
            Part::Headroom => "headroom",
            Part::Ingress => "ingress",
            Part::Egress => "egress",
        }
    }

    /// Its classes.
    pub(crate) fn listed(&self) -> String {
        self.classes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    /// The same, to be read.
    pub(crate) fn what(&self) -> String {
        [self.word(), &self.listed()].join(" ").trim_end().to_string()
    }
}

/// The recorded buffers of `plan`, by switch.
pub(crate) fn recorded<'p>(plan: &'p Plan) -> impl Iterator<Item = Recorded<'p>> {
    let topology = &plan.topology;
    let of_switch = move |(spec, node): (&'p spec::buffers::Buffer, u32)| {
        let probes = plan.spec.record.ports.iter();
        let here = probes.filter(|probe| topology.ports[probe.port as usize].from == node);
        let every = here.map(|probe| probe.every_ps).min()?;
        let parts = spec.parts(&headroom::of_inputs(&plan.spec, topology, spec, node)).into_iter();
        let parts = parts.map(|(part, classes, bytes)| RecordedPart { node, part, classes, bytes }).collect();
        Some(Recorded { node, every, parts })
    };
    let mut switches: Vec<_> =
        plan.spec.buffers.iter().flat_map(|spec| spec.nodes.iter().map(move |&node| (spec, node))).collect();
    switches.sort_by_key(|row| row.1);
    switches.into_iter().filter_map(of_switch)
}

impl Pooled {
    /// A frame comes at `now`.
    pub(crate) fn enter(&mut self, now: Time, passage: Passage, size: Bytes) -> Entered {
        let entered = self.buffer.enter(now, passage, size);
        self.note(now);
        entered
    }

    /// A frame leaves at `now`: whether its sender may go on.
    pub(crate) fn leave(&mut self, now: Time, passage: Passage, size: Bytes) -> bool {
        let goes_on = self.buffer.leave(now, passage, size);
        self.note(now);
        goes_on
    }

    fn note(&mut self, now: Time) {
        if let Some(series) = &mut self.series {
            series.note(now, self.buffer.levels());
        }
    }
}

impl Pools {
    /// The empty buffers of `plan`; none if it has none.
    pub(crate) fn new(plan: &Plan, end: Time) -> Option<Box<Pools>> {
        if plan.spec.buffers.is_empty() {
            return None;
        }
        let topology = &plan.topology;
        let mut inputs: Vec<Vec<u32>> = vec![Vec::new(); topology.nodes.len()];
        let mut numbers = Vec::with_capacity(topology.ports.len());
        for (id, port) in (0..).zip(&topology.ports) {
            let inputs = &mut inputs[port.to as usize];
            numbers.push(inputs.len() as u32);
            inputs.push(id);
        }
        let mut of_node: Vec<Option<Box<Pooled>>> = topology.nodes.iter().map(|_| None).collect();
        for (place, spec) in plan.spec.buffers.iter().enumerate() {
            for &node in &spec.nodes {
                let inputs = std::mem::take(&mut inputs[node as usize]);
                let buffer = Buffer::new(spec, &headroom::of_inputs(&plan.spec, topology, spec, node));
                let repeats = vec![Time::NEVER; inputs.len()];
                of_node[node as usize] = Some(Box::new(Pooled { buffer, place, inputs, repeats, series: None }));
            }
        }
        let mut first = 0;
        for Recorded { node, every, parts } in recorded(plan) {
            if let Some(switch) = &mut of_node[node as usize] {
                switch.series = Some(Box::new(Occupancy::new(first, parts.len(), Boundaries::new(every, end))));
                first += parts.len() as u32;
            }
        }
        Some(Box::new(Pools { of_node, numbers }))
    }

    /// The switch `node`, if it has such a buffer.
    #[inline]
    pub(crate) fn at(&mut self, node: u32) -> Option<&mut Pooled> {
        self.of_node[node as usize].as_deref_mut()
    }

    /// The same, to look at.
    pub(crate) fn seen(&self, node: u32) -> Option<&Pooled> {
        self.of_node[node as usize].as_deref()
    }

    /// The number of a port among the inputs of the node that it leads to.
    pub(crate) fn number(&self, port: u32) -> usize {
        self.numbers[port as usize] as usize
    }

    /// How a frame counts that came over port `input` and waits for port `output` of the same switch.
    pub(crate) fn passage(&self, input: u32, output: u32, class: u8) -> Passage {
        Passage { input: self.number(input), output: self.number(output ^ 1), class }
    }

    /// How many rows of intervals there are.
    pub(crate) fn rows(&self) -> usize {
        self.of_node.iter().flatten().filter_map(|switch| switch.series.as_ref()).map(|series| series.rows()).sum()
    }

    /// Moves the rows of the intervals that ended up to `now` to `part`.
    pub(crate) fn take_rows(&mut self, now: Time, part: &mut Totals) {
        for switch in self.of_node.iter_mut().flatten() {
            if let Some(series) = &mut switch.series {
                series.end(now);
                part.pools.extend(series.take());
            }
        }
    }

    /// What each of them held up to `end`.
    pub(crate) fn totals(&mut self, end: Time) -> (Vec<BufferTotals>, Vec<InputTotals>) {
        let (mut buffers, mut inputs) = (Vec::new(), Vec::new());
        let switches = (0..).zip(&mut self.of_node).filter_map(|(node, switch)| Some((node, switch.as_mut()?)));
        for (node, switch) in switches {
            let (_, most, byte_ps) = switch.buffer.totals_at(end);
            buffers.push(BufferTotals { node, max_bytes: most.count(), byte_ps });
            for (number, &port) in switch.inputs.iter().enumerate() {
                let rows = switch.buffer.counters(number);
                inputs.extend(rows.map(|(class, counters)| InputTotals { port, class, counters }));
            }
        }
        inputs.sort_by_key(|row| (row.port, row.class));
        (buffers, inputs)
    }
}

/// The switches that ask neighbours to stop because of what waits in such a buffer, by node: how.
pub(crate) fn asking(spec: &spec::Spec, nodes: usize) -> Vec<Option<u32>> {
    let mut asking = vec![None; nodes];
    for (place, buffer) in (0..).zip(&spec.buffers).filter(|(_, buffer)| buffer.flow_control.is_some()) {
        buffer.nodes.iter().for_each(|&node| asking[node as usize] = Some(place));
    }
    asking
}
