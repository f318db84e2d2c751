//! Legality that no type can express.

mod buffers;
mod control;
mod events;
mod messages;
mod queues;
mod record;
mod switching;
mod transport;

use std::collections::BTreeSet;

use self::record::check_record;
use crate::error::{SpecError, refuse};
use crate::network::Topology;
use crate::spec::classes::CLASSES;
use crate::spec::{Departures, Destination, FrameSize, Run, Source, Spec, Traffic};
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
        let topology = Topology::expand(&self.network).map_err(|error| error.under("/network"))?;
        queues::check_queues(self, &topology)?;
        check_run(&self.run)?;
        check_traffic(&self.traffic, &topology)?;
        switching::check_switching(self, &topology)?;
        buffers::check_buffers(self, &topology)?;
        control::check_control(&self.control, &topology).map_err(|error| error.under("/control"))?;
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

fn check_run(run: &Run) -> Result<(), SpecError> {
    if run.duration_ps == Span::ZERO || run.duration_ps > MAX_DURATION {
        let message = format!("a run lasts more than 0 s and at most {MAX_DURATION} (got {})", run.duration_ps);
        return Err(SpecError::new("/run/duration_ps", message));
    }
    Ok(())
}

fn check_port(port: u32, topology: &Topology) -> Result<(), SpecError> {
    if port as usize >= topology.ports.len() {
        return Err(SpecError::new("", format!("there is no port {port}: the network has {}", topology.ports.len())));
    }
    Ok(())
}

fn check_host(node: u32, topology: &Topology) -> Result<(), SpecError> {
    match topology.nodes.get(node as usize) {
        None => Err(SpecError::new("", format!("there is no node {node}: the network has {}", topology.nodes.len()))),
        Some(found) if !topology.is_host(node) => {
            Err(SpecError::new("", format!("only hosts send and receive: '{}' is a switch", found.name)))
        }
        Some(_) => Ok(()),
    }
}

fn check_traffic(traffic: &[Traffic], topology: &Topology) -> Result<(), SpecError> {
    let mut taken = BTreeSet::new();
    let mut listed = Listed::new(topology);
    let mut flows = 0;
    for (i, group) in traffic.iter().enumerate() {
        let at = format!("/traffic/{i}");
        refuse!(group.name.is_empty(), format!("{at}/name"), "traffic needs a name");
        refuse!(!taken.insert(&group.name), format!("{at}/name"), "two groups of traffic are called '{}'", group.name);
        if group.class >= CLASSES {
            let message = format!("a traffic class is a number from 0 to {} (got {})", CLASSES - 1, group.class);
            return Err(SpecError::new(format!("{at}/class"), message));
        }
        if let Some(before) = group.continues.filter(|&before| before as usize >= i) {
            let message = format!("a group continues one that stands before it, at place {i} (got {before})");
            return Err(SpecError::new(format!("{at}/continues"), message));
        }
        flows += group.flows();
        if flows > MAX_FLOWS {
            let message = format!("{flows} or more pairs of a source and a destination; at most {MAX_FLOWS}");
            return Err(SpecError::new(format!("{at}/sources"), message));
        }
        for (j, source) in group.sources.iter().enumerate() {
            check_source(source, topology, &mut listed).map_err(|error| error.under(format!("{at}/sources/{j}")))?;
        }
        if let Some(tcp) = &group.tcp {
            transport::check_connections(tcp, topology).map_err(|error| error.under(format!("{at}/tcp")))?;
        }
        if let Some(probers) = &group.probers {
            transport::check_probers(probers, topology).map_err(|error| error.under(format!("{at}/probers")))?;
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

fn check_source(source: &Source, topology: &Topology, listed: &mut Listed) -> Result<(), SpecError> {
    check_host(source.from, topology).map_err(|error| error.under("/from"))?;
    match &source.to {
        Destination::Node(node) => check_host(*node, topology).map_err(|error| error.under("/to/node"))?,
        Destination::Uniform(list) => {
            refuse!(list.is_empty(), "/to/uniform", "a source needs at least one destination");
            listed.clear();
            for (i, &node) in list.iter().enumerate() {
                check_host(node, topology).map_err(|error| error.under(format!("/to/uniform/{i}")))?;
                if !listed.insert(node) {
                    let name = &topology.nodes[node as usize].name;
                    return Err(SpecError::new(format!("/to/uniform/{i}"), format!("'{name}' stands here twice")));
                }
            }
        }
    }
    check_times(source.start_ps, source.stop_ps)?;
    check_departures(&source.departures).map_err(|error| error.under("/departures"))?;
    check_sizes(&source.frame_size).map_err(|error| error.under("/frame_size"))
}

fn check_times(start: Time, stop: Time) -> Result<(), SpecError> {
    refuse!(start > stop, "/stop_ps", "a source stops after its start (start {}, stop {})", start, stop);
    refuse!(start > Time::ZERO + MAX_DURATION, "/start_ps", "a source starts within {MAX_DURATION} (got {})", start);
    Ok(())
}

pub(crate) fn check_departures(departures: &Departures) -> Result<(), SpecError> {
    let gap = |at: &str, gap: f64| {
        if gap >= 1.0 && gap.is_finite() {
            Ok(())
        } else {
            Err(SpecError::new(at, format!("a gap is a number of ps, at least 1 (got {gap})")))
        }
    };
    match *departures {
        Departures::Poisson { mean_gap_ps } => gap("/mean_gap_ps", mean_gap_ps),
        Departures::Constant { gap_ps } => gap("/gap_ps", gap_ps),
        Departures::Bernoulli { slot_ps, probability } => {
            refuse!(slot_ps == Span::ZERO, "/slot_ps", "a slot is longer than 0 s");
            if probability > 0.0 && probability <= 1.0 {
                return Ok(());
            }
            Err(SpecError::new("/probability", format!("a probability above 0 and at most 1 (got {probability})")))
        }
        Departures::Bursts { slot_ps, load, mean_frames, .. } => {
            refuse!(slot_ps == Span::ZERO, "/slot_ps", "a slot is longer than 0 s");
            refuse!(!(load > 0.0 && load <= 1.0), "/load", "a load above 0 and at most 1 (got {load})");
            if mean_frames >= 1.0 && mean_frames.is_finite() {
                return Ok(());
            }
            let message = format!("a burst has at least one frame (got a mean of {mean_frames})");
            Err(SpecError::new("/mean_frames", message))
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

pub(crate) fn check_sizes(frame_size: &FrameSize) -> Result<(), SpecError> {
    let size = |at: String, size: Bytes| {
        if size > Bytes::ZERO && size <= MAX_FRAME {
            return Ok(());
        }
        Err(SpecError::new(at, format!("a frame is 1 B to {} B long (got {})", MAX_FRAME.count(), size)))
    };
    match frame_size {
        FrameSize::Fixed(fixed) => size("/fixed".into(), *fixed),
        FrameSize::Mix(parts) => {
            for (i, &(part, weight)) in parts.iter().enumerate() {
                size(format!("/mix/{i}/0"), part)?;
                refuse!(weight == 0, format!("/mix/{i}/1"), "a weight is at least 1 (got 0)");
            }
            refuse!(parts.is_empty(), "/mix", "a mix of frame sizes needs at least one size");
            Ok(())
        }
    }
}
