//! Legality that no type can express.

mod buffers;
mod control;
mod events;
mod messages;
mod queues;
mod record;
mod switching;
mod transport;

use std::collections::{BTreeMap, BTreeSet};

use self::record::check_record;
use crate::error::{Checked, Part, SpecError, each, refuse};
use crate::network::{PortSpec, Topology};
use crate::spec::classes::CLASSES;
use crate::spec::{Departures, Destination, Discipline, FrameSize, Node, Run, Source, Spec, Traffic};
use crate::units::{Bytes, Span, Time};

/// Longest run: 2^62 ps, 53 days.
pub(crate) const MAX_DURATION: Span = Span::from_ps(1 << 62);
/// Longest frame.
pub(crate) const MAX_FRAME: Bytes = Bytes::new(65_535);
/// Most rows that the probes of one run may write; they may leave it while it goes on.
pub(crate) const MAX_ROWS: u64 = 1_000_000_000;
/// Most frames of a capture: about 1 GB of memory.
pub(crate) const MAX_CAPTURE: u64 = 10_000_000;
/// Most flows of a scenario: pairs of a source and one of its destinations.
pub(crate) const MAX_FLOWS: u64 = 1 << 22;

impl Spec {
    /// Reads a spec from JSON and checks it.
    ///
    /// # Errors
    /// JSON that is no spec, or a spec that is not legal.
    pub fn from_json(text: &str) -> Result<Spec, SpecError> {
        let spec = Spec::read(text)?;
        spec.check()?;
        Ok(spec)
    }

    /// Reads a spec from JSON, to be checked.
    ///
    /// # Errors
    /// The first place that no spec has.
    pub fn read(text: &str) -> Result<Spec, SpecError> {
        parse(text)
    }

    /// Writes the spec as JSON, in one form only.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a spec has text keys only")
    }

    /// Checks what no type can express, and gives the network in full.
    ///
    /// Whether every destination can be reached is known once paths are laid; the simulator says so then.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<Topology, SpecError> {
        let topology = Topology::expand(&self.network).under("/network")?;
        queues::check_queues(self, &topology)?;
        check_run(&self.run)?;
        check_traffic(&self.traffic, &topology)?;
        switching::check_switching(self, &topology)?;
        buffers::check_buffers(self, &topology)?;
        control::check_control(&self.control, &topology).under("/control")?;
        transport::check_beside_control(self, &topology)?;
        events::check_events(self, &topology)?;
        messages::check_messages(self, &topology)?;
        check_record(&self.record, self, &topology)?;
        Ok(topology)
    }
}

impl crate::spec::Network {
    /// Reads a network from JSON.
    ///
    /// # Errors
    /// JSON that is no network. What the network holds is checked by [`Topology::expand`].
    pub fn from_json(text: &str) -> Result<crate::spec::Network, SpecError> {
        parse(text)
    }
}

pub(crate) fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, SpecError> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    // Again, for the place of the fault, which takes longer.
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let pointer = pointer(error.path());
        SpecError::new(pointer, error.into_inner().to_string())
    })?;
    deserializer.end().map_err(|error| SpecError::new("", error.to_string()))?;
    Ok(value)
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let segment = |segment: &Segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
        Segment::Enum { variant } => format!("/{variant}"),
        Segment::Unknown => String::new(),
    };
    path.iter().map(segment).collect()
}

fn check_run(run: &Run) -> Checked {
    let lasts = run.duration_ps;
    let is_possible = lasts > Span::ZERO && lasts <= MAX_DURATION;
    refuse!(!is_possible, "/run/duration_ps", "a run lasts more than 0 s and at most {MAX_DURATION} (got {lasts})");
    Ok(())
}

fn check_port(port: u32, topology: &Topology) -> Checked<&PortSpec> {
    let all = topology.ports.len();
    let missing = || SpecError::new("", format!("there is no port {port}: the network has {all}"));
    topology.ports.get(port as usize).ok_or_else(missing)
}

fn check_node(node: u32, topology: &Topology) -> Checked<&Node> {
    let all = topology.nodes.len();
    let missing = || SpecError::new("", format!("there is no node {node}: the network has {all}"));
    topology.nodes.get(node as usize).ok_or_else(missing)
}

fn check_host(node: u32, topology: &Topology) -> Checked<&Node> {
    let found = check_node(node, topology)?;
    refuse!(!topology.is_host(node), "", "only hosts send and receive: '{}' is a switch", found.name);
    Ok(found)
}

fn check_class(class: u8) -> Checked {
    refuse!(class >= CLASSES, "", "a traffic class is a number from 0 to {} (got {class})", CLASSES - 1);
    Ok(())
}

/// The discipline of each port that has one of its own: that of the last rule.
fn disciplines(spec: &Spec) -> BTreeMap<u32, &Discipline> {
    spec.queues.iter().flat_map(|rule| rule.ports.iter().map(|&port| (port, &rule.discipline))).collect()
}

fn check_traffic(traffic: &[Traffic], topology: &Topology) -> Checked {
    let mut taken = BTreeSet::new();
    let mut listed = Listed::new(topology);
    let mut flows = 0;
    for (i, group) in traffic.iter().enumerate() {
        let at = format!("/traffic/{i}");
        refuse!(group.name.is_empty(), format!("{at}/name"), "traffic needs a name");
        refuse!(!taken.insert(&group.name), format!("{at}/name"), "two groups of traffic are called '{}'", group.name);
        check_class(group.class).under(format_args!("{at}/class"))?;
        if let Some(before) = group.continues.filter(|&before| before as usize >= i) {
            let message = format!("a group continues one that stands before it, at place {i} (got {before})");
            return Err(SpecError::new(format!("{at}/continues"), message));
        }
        flows += group.flows();
        let of_sources = format!("{at}/sources");
        refuse!(
            flows > MAX_FLOWS,
            of_sources,
            "{flows} or more pairs of a source and a destination; at most {MAX_FLOWS}"
        );
        each(&group.sources, of_sources, |source| check_source(source, topology, &mut listed))?;
        if let Some(tcp) = &group.tcp {
            transport::check_connections(tcp, topology).under(format_args!("{at}/tcp"))?;
        }
        if let Some(probers) = &group.probers {
            transport::check_probers(probers, topology).under(format_args!("{at}/probers"))?;
        }
    }
    Ok(())
}

/// Nodes that stand in the current list.
struct Listed {
    list: u32,
    /// The last list that each node stood in.
    last_list: Vec<u32>,
}

impl Listed {
    fn new(topology: &Topology) -> Listed {
        Listed { list: 0, last_list: vec![0; topology.nodes.len()] }
    }

    fn clear(&mut self) {
        self.list += 1;
    }

    /// Whether `node` did not stand there yet.
    fn insert(&mut self, node: u32) -> bool {
        std::mem::replace(&mut self.last_list[node as usize], self.list) != self.list
    }
}

fn check_source(source: &Source, topology: &Topology, listed: &mut Listed) -> Checked {
    check_host(source.from, topology).under("/from")?;
    match &source.to {
        Destination::Node(node) => drop(check_host(*node, topology).under("/to/node")?),
        Destination::Uniform(list) => {
            refuse!(list.is_empty(), "/to/uniform", "a source needs at least one destination");
            listed.clear();
            each(list, "/to/uniform", |&node| {
                let name = &check_host(node, topology)?.name;
                refuse!(!listed.insert(node), "", "'{name}' stands here twice");
                Ok(())
            })?;
        }
    }
    check_times(source.start_ps, source.stop_ps)?;
    check_departures(&source.departures).under("/departures")?;
    check_sizes(&source.frame_size).under("/frame_size")
}

fn check_times(start: Time, stop: Time) -> Checked {
    refuse!(start > stop, "/stop_ps", "a source stops after its start (start {}, stop {})", start, stop);
    refuse!(start > Time::ZERO + MAX_DURATION, "/start_ps", "a source starts within {MAX_DURATION} (got {})", start);
    Ok(())
}

pub(crate) fn check_departures(departures: &Departures) -> Checked {
    let gap = |at: &str, gap: f64| {
        refuse!(!(gap >= 1.0 && gap.is_finite()), at, "a gap is a number of ps, at least 1 (got {gap})");
        Ok(())
    };
    match *departures {
        Departures::Poisson { mean_gap_ps } => gap("/mean_gap_ps", mean_gap_ps),
        Departures::Constant { gap_ps } => gap("/gap_ps", gap_ps),
        Departures::Bernoulli { slot_ps, probability } => {
            refuse!(slot_ps == Span::ZERO, "/slot_ps", "a slot is longer than 0 s");
            let is_possible = probability > 0.0 && probability <= 1.0;
            refuse!(!is_possible, "/probability", "a probability above 0 and at most 1 (got {probability})");
            Ok(())
        }
        Departures::Bursts { slot_ps, load, mean_frames, .. } => {
            refuse!(slot_ps == Span::ZERO, "/slot_ps", "a slot is longer than 0 s");
            refuse!(!(load > 0.0 && load <= 1.0), "/load", "a load above 0 and at most 1 (got {load})");
            let is_possible = mean_frames >= 1.0 && mean_frames.is_finite();
            refuse!(!is_possible, "/mean_frames", "a burst has at least one frame (got a mean of {mean_frames})");
            Ok(())
        }
        Departures::OnOff { gap_ps, mean_on_ps, .. } => {
            gap("/gap_ps", gap_ps)?;
            if (mean_on_ps.ps() as f64) * MAX_PERIODS_PER_GAP >= gap_ps {
                return Ok(());
            }
            let message = format!(
                "a mean on period of at least 1/{MAX_PERIODS_PER_GAP} of the gap ({gap_ps} ps; got {} ps)",
                mean_on_ps.ps()
            );
            Err(SpecError::new("/mean_on_ps", message))
        }
    }
}

/// More on periods than this between two frames are a mistake, and would take for ever to draw.
const MAX_PERIODS_PER_GAP: f64 = 1000.0;

fn check_frame(name: &str, size: Bytes) -> Checked {
    let is_possible = size > Bytes::ZERO && size <= MAX_FRAME;
    refuse!(!is_possible, format!("/{name}"), "a frame is 1 B to {} B long (got {size})", MAX_FRAME.count());
    Ok(())
}

pub(crate) fn check_sizes(frame_size: &FrameSize) -> Checked {
    match frame_size {
        FrameSize::Fixed(fixed) => check_frame("fixed", *fixed),
        FrameSize::Mix(parts) => {
            each(parts, "/mix", |&(part, weight)| {
                check_frame("0", part)?;
                refuse!(weight == 0, "/1", "a weight is at least 1 (got 0)");
                Ok(())
            })?;
            refuse!(parts.is_empty(), "/mix", "a mix of frame sizes needs at least one size");
            Ok(())
        }
    }
}
