//! What is recorded.

use std::collections::BTreeSet;

use super::{MAX_CAPTURE, MAX_ROWS, check_host, check_port};
use crate::cc;
use crate::error::{Checked, Part, SpecError, each, refuse};
use crate::network::Topology;
use crate::spec::{Capture, LevelProbe, Record, Source, Spec, StreamProbe, Traffic};
use crate::units::{Bytes, Span, Time};

pub(super) fn check_record(record: &Record, spec: &Spec, topology: &Topology) -> Checked {
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
        let name = &check_port(probe.port, topology).under(format_args!("{at}/port"))?.name;
        refuse!(!ports.insert(probe.port), format!("{at}/port"), "port '{name}' is recorded twice");
        check(probe.every_ps, 1, at)?;
    }
    let lists = [("traffic", &record.traffic), ("flows", &record.flows), ("connections", &record.connections)];
    for (list, probes) in lists {
        let mut groups = BTreeSet::new();
        for (i, probe) in probes.iter().enumerate() {
            let at = format!("/record/{list}/{i}");
            let group = check_group(probe.traffic, spec).under(format_args!("{at}/traffic"))?;
            let is_new = groups.insert(probe.traffic);
            refuse!(!is_new, format!("{at}/traffic"), "traffic '{}' is recorded twice", group.name);
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
        let name = &check_host(probe.host, topology).under(format_args!("{at}/host"))?.name;
        let is_limited = spec.control.limited_hosts().contains(&probe.host);
        refuse!(!is_limited, format!("{at}/host"), "host '{name}' has no rate limiters");
        refuse!(!hosts.insert(probe.host), format!("{at}/host"), "host '{name}' is recorded twice");
        let sources = spec.traffic.iter().flat_map(|group| &group.sources);
        check(probe.every_ps, sources.filter(|source| source.from == probe.host).map(Source::flows).sum(), at)?;
    }
    let mut ports = BTreeSet::new();
    each(&record.queue_levels, "/record/queue_levels", |probe| check_levels(probe, topology, &mut ports))?;
    let (mut names, mut ports) = (BTreeSet::new(), BTreeSet::new());
    for (i, capture) in record.captures.iter().enumerate() {
        let at = format!("/record/captures/{i}");
        if capture.name.is_empty() || !names.insert(&capture.name) {
            let message = format!("a capture needs a name of its own (got '{}')", capture.name);
            return Err(SpecError::new(format!("{at}/name"), message));
        }
        check_capture(capture, topology, &mut ports).under(at)?;
    }
    Ok(())
}

fn check_capture(capture: &Capture, topology: &Topology, listed: &mut BTreeSet<u32>) -> Checked {
    each(&capture.ports, "/ports", |&port| {
        let name = &check_port(port, topology)?.name;
        refuse!(!listed.insert(port), "", "the frames of port '{name}' are recorded twice");
        Ok(())
    })?;
    check_window(capture.from_ps, capture.to_ps)?;
    let frames = capture.frames;
    let is_possible = (1..=MAX_CAPTURE).contains(&frames);
    refuse!(!is_possible, "/frames", "a capture keeps 1 to {MAX_CAPTURE} frames (got {frames})");
    Ok(())
}

fn check_group(group: u32, spec: &Spec) -> Checked<&Traffic> {
    let all = spec.traffic.len();
    let missing = || SpecError::new("", format!("there is no traffic {group}: there are {all}"));
    spec.traffic.get(group as usize).ok_or_else(missing)
}

fn check_window(from: Time, to: Time) -> Checked {
    refuse!(from >= to, "/to_ps", "the time that counts ends after its start, {from} (got {to})");
    Ok(())
}

fn check_streams(probes: &[StreamProbe], spec: &Spec) -> Checked {
    let mut groups = BTreeSet::new();
    for (i, probe) in probes.iter().enumerate() {
        let at = format!("/record/probe_streams/{i}");
        let group = check_group(probe.traffic, spec).under(format_args!("{at}/traffic"))?;
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

fn check_levels(probe: &LevelProbe, topology: &Topology, listed: &mut BTreeSet<u32>) -> Checked {
    let port = check_port(probe.port, topology).under("/port")?;
    let is_host = topology.is_host(port.from);
    refuse!(is_host, "/port", "levels are recorded of queues of switches: '{}' is a host's", port.name);
    refuse!(!listed.insert(probe.port), "/port", "port '{}' is recorded twice", port.name);
    check_window(probe.from_ps, probe.to_ps)?;
    refuse!(probe.bin_bytes == Bytes::ZERO, "/bin_bytes", "a bin is wider than 0 B (got 0)");
    Ok(())
}
