//! What is recorded.

use std::collections::BTreeSet;

use super::{MAX_CAPTURE, MAX_ROWS, check_host, check_port};
use crate::cc;
use crate::error::{SpecError, refuse};
use crate::network::Topology;
use crate::spec::{Capture, LevelProbe, Record, Source, Spec, StreamProbe};
use crate::units::{Bytes, Span, Time};

pub(super) fn check_record(record: &Record, spec: &Spec, topology: &Topology) -> Result<(), SpecError> {
    let mut rows: u64 = 0;
    let mut check = |every: Span, series: u64, at: String| {
        refuse!(every == Span::ZERO, format!("{at}/every_ps"), "an interval is longer than 0 s");
        rows = rows.saturating_add(spec.run.duration_ps.ps().div_ceil(every.ps()).saturating_mul(series));
        if rows > MAX_ROWS {
            let message = format!("{rows} or more rows would be recorded; at most {MAX_ROWS}: take longer intervals");
            return Err(SpecError::new(format!("{at}/every_ps"), message));
        }
        Ok(())
    };
    let mut ports = BTreeSet::new();
    for (i, probe) in record.ports.iter().enumerate() {
        let at = format!("/record/ports/{i}");
        check_port(probe.port, topology).map_err(|error| error.under(format!("{at}/port")))?;
        if !ports.insert(probe.port) {
            let name = &topology.ports[probe.port as usize].name;
            return Err(SpecError::new(format!("{at}/port"), format!("port '{name}' is recorded twice")));
        }
        check(probe.every_ps, 1, at)?;
    }
    let lists = [("traffic", &record.traffic), ("flows", &record.flows), ("connections", &record.connections)];
    for (list, probes) in lists {
        let mut groups = BTreeSet::new();
        for (i, probe) in probes.iter().enumerate() {
            let at = format!("/record/{list}/{i}");
            let Some(group) = spec.traffic.get(probe.traffic as usize) else {
                let message = format!("there is no traffic {}: there are {}", probe.traffic, spec.traffic.len());
                return Err(SpecError::new(format!("{at}/traffic"), message));
            };
            if !groups.insert(probe.traffic) {
                let message = format!("traffic '{}' is recorded twice", group.name);
                return Err(SpecError::new(format!("{at}/traffic"), message));
            }
            let series = match list {
                "flows" => group.flows(),
                "connections" => group.tcp.as_ref().map_or(0, |tcp| tcp.list.len() as u64),
                _ => 1,
            };
            check(probe.every_ps, series, at)?;
        }
    }
    check_streams(&record.probe_streams, spec)?;
    let mut hosts = BTreeSet::new();
    for (i, probe) in record.limiters.iter().enumerate() {
        let at = format!("/record/limiters/{i}");
        check_host(probe.host, topology).map_err(|error| error.under(format!("{at}/host")))?;
        let name = &topology.nodes[probe.host as usize].name;
        if !spec.control.limited_hosts().contains(&probe.host) {
            return Err(SpecError::new(format!("{at}/host"), format!("host '{name}' has no rate limiters")));
        }
        refuse!(!hosts.insert(probe.host), format!("{at}/host"), "host '{name}' is recorded twice");
        let sources = spec.traffic.iter().flat_map(|group| &group.sources);
        check(probe.every_ps, sources.filter(|source| source.from == probe.host).map(Source::flows).sum(), at)?;
    }
    let mut ports = BTreeSet::new();
    for (i, probe) in record.queue_levels.iter().enumerate() {
        check_levels(probe, topology, &mut ports).map_err(|error| error.under(format!("/record/queue_levels/{i}")))?;
    }
    let (mut names, mut ports) = (BTreeSet::new(), BTreeSet::new());
    for (i, capture) in record.captures.iter().enumerate() {
        let at = format!("/record/captures/{i}");
        if capture.name.is_empty() || !names.insert(&capture.name) {
            let message = format!("a capture needs a name of its own (got '{}')", capture.name);
            return Err(SpecError::new(format!("{at}/name"), message));
        }
        check_capture(capture, topology, &mut ports).map_err(|error| error.under(at))?;
    }
    Ok(())
}

fn check_capture(capture: &Capture, topology: &Topology, listed: &mut BTreeSet<u32>) -> Result<(), SpecError> {
    for (j, &port) in capture.ports.iter().enumerate() {
        let at = format!("/ports/{j}");
        check_port(port, topology).map_err(|error| error.under(&at))?;
        if !listed.insert(port) {
            let name = &topology.ports[port as usize].name;
            return Err(SpecError::new(at, format!("the frames of port '{name}' are recorded twice")));
        }
    }
    check_window(capture.from_ps, capture.to_ps)?;
    if !(1..=MAX_CAPTURE).contains(&capture.frames) {
        let message = format!("a capture keeps 1 to {MAX_CAPTURE} frames (got {})", capture.frames);
        return Err(SpecError::new("/frames", message));
    }
    Ok(())
}

fn check_window(from: Time, to: Time) -> Result<(), SpecError> {
    refuse!(from >= to, "/to_ps", "the time that counts ends after its start, {from} (got {to})");
    Ok(())
}

fn check_streams(probes: &[StreamProbe], spec: &Spec) -> Result<(), SpecError> {
    let mut groups = BTreeSet::new();
    for (i, probe) in probes.iter().enumerate() {
        let at = format!("/record/probe_streams/{i}");
        let Some(group) = spec.traffic.get(probe.traffic as usize) else {
            let message = format!("there is no traffic {}: there are {}", probe.traffic, spec.traffic.len());
            return Err(SpecError::new(format!("{at}/traffic"), message));
        };
        let name = &group.name;
        let Some((rapid, connections)) = group.tcp.as_ref().and_then(|tcp| match &tcp.config.congestion_control {
            cc::Config::Rapid(rapid) => Some((rapid, tcp)),
            _ => None,
        }) else {
            let message = format!("traffic '{name}' has no probe streams: no rapid sender");
            return Err(SpecError::new(format!("{at}/traffic"), message));
        };
        refuse!(!groups.insert(probe.traffic), format!("{at}/traffic"), "traffic '{name}' is recorded twice");
        let frame = connections.config.full_frame() + rapid.framing_bytes;
        let packets = (rapid.rate.most_bps * spec.run.duration_ps).count() / frame.count();
        let rows = packets.saturating_mul(connections.list.len() as u64);
        let rows = if probe.packets { rows } else { rows / u64::from(rapid.ramp.packets) };
        if rows > MAX_ROWS {
            let message =
                format!("up to {rows} rows would be recorded; at most {MAX_ROWS}: a shorter run, or no packets");
            return Err(SpecError::new(at, message));
        }
    }
    Ok(())
}

fn check_levels(probe: &LevelProbe, topology: &Topology, listed: &mut BTreeSet<u32>) -> Result<(), SpecError> {
    check_port(probe.port, topology).map_err(|error| error.under("/port"))?;
    let port = &topology.ports[probe.port as usize];
    if topology.is_host(port.from) {
        let message = format!("levels are recorded of queues of switches: '{}' is a host's", port.name);
        return Err(SpecError::new("/port", message));
    }
    refuse!(!listed.insert(probe.port), "/port", "port '{}' is recorded twice", port.name);
    check_window(probe.from_ps, probe.to_ps)?;
    refuse!(probe.bin_bytes == Bytes::ZERO, "/bin_bytes", "a bin is wider than 0 B (got 0)");
    Ok(())
}
