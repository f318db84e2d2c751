//! Legality of connections.

use super::{check_departures, check_host, check_sizes, check_times};
use crate::error::{Checked, Part, SpecError, each, refuse};
use crate::network::Topology;
use crate::spec::Spec;
use crate::spec::transport::{Connection, Connections, Hosts, Load, Probers};
use crate::units::{Bytes, Span};
use std::collections::BTreeSet;

pub(super) fn check_connections(tcp: &Connections, topology: &Topology) -> Checked {
    tcp.config.check().under("/config")?;
    check_hosts(&tcp.hosts).under("/hosts")?;
    each(&tcp.list, "/list", |connection| check_connection(connection, topology))
}

pub(super) fn check_probers(probers: &Probers, topology: &Topology) -> Checked {
    probers.config.check().under("/config")?;
    check_hosts(&probers.hosts).under("/hosts")?;
    each(&probers.list, "/list", |prober| {
        check_ends(prober.from, prober.to, topology)?;
        check_times(prober.start_ps, prober.stop_ps)
    })
}

/// A sender that asks the port of its host how many frames wait there does not see those that wait before it, for a limiter or PAUSE.
pub(super) fn check_beside_control(spec: &Spec, topology: &Topology) -> Checked {
    let pauses = |node: u32| spec.control.pause.iter().any(|rule| rule.nodes.contains(&node));
    let mut managed: BTreeSet<u32> = spec.control.limited_hosts().iter().copied().collect();
    managed.extend(topology.ports.iter().filter(|port| pauses(port.to)).map(|port| port.from));
    for (i, probers) in spec.traffic.iter().enumerate().filter_map(|(i, group)| Some((i, group.probers.as_ref()?))) {
        if let Some(prober) = probers.list.iter().find(|prober| managed.contains(&prober.from)) {
            let name = &topology.nodes[prober.from as usize].name;
            let message = format!("'{name}' has rate limiters or is held by PAUSE: no estimator stands beside these");
            return Err(SpecError::new(format!("/traffic/{i}/probers"), message));
        }
    }
    // PAUSE holds the port of a host whose senders ask it, unless sources are pulled there.
    let pulled: BTreeSet<u32> =
        spec.traffic.iter().flat_map(|group| &group.sources).map(|source| source.from).collect();
    let limited: BTreeSet<u32> = spec.control.limited_hosts().iter().copied().collect();
    for (i, tcp) in spec.traffic.iter().enumerate().filter_map(|(i, group)| Some((i, group.tcp.as_ref()?))) {
        if !tcp.asks_its_port() {
            continue;
        }
        let (pointer, what) = match &tcp.hosts.adapter_frames {
            Some(_) => ("hosts/adapter_frames", "an adapter with a bound of its own"),
            None => ("config/congestion_control", "Rapid"),
        };
        let unseen = |host: &u32| limited.contains(host) || managed.contains(host) && pulled.contains(host);
        if let Some(connection) = tcp.list.iter().find(|connection| unseen(&connection.from)) {
            let name = &topology.nodes[connection.from as usize].name;
            let message = format!(
                "'{name}' has rate limiters, or is held by PAUSE and sends other traffic: {what} does not stand beside these"
            );
            return Err(SpecError::new(format!("/traffic/{i}/tcp/{pointer}"), message));
        }
    }
    Ok(())
}

fn check_connection(connection: &Connection, topology: &Topology) -> Checked {
    check_ends(connection.from, connection.to, topology)?;
    check_times(connection.start_ps, connection.stop_ps)?;
    match &connection.load {
        Load::Endless {} => Ok(()),
        Load::Transfer { bytes } if (1..=MAX_TRANSFER).contains(&bytes.count()) => Ok(()),
        Load::Transfer { bytes } => {
            let most = Bytes::new(MAX_TRANSFER);
            Err(SpecError::new("/load/bytes", format!("a transfer is 1 B to {most} long (got {bytes})")))
        }
        Load::Writes { departures, write_size, .. } => {
            check_departures(departures).under("/load/departures")?;
            check_sizes(write_size).under("/load/write_size")
        }
    }
}

fn check_ends(from: u32, to: u32, topology: &Topology) -> Checked {
    check_host(from, topology).under("/from")?;
    let name = &check_host(to, topology).under("/to")?.name;
    refuse!(from == to, "/to", "a connection has two ends: '{name}' is both");
    Ok(())
}

fn check_hosts(hosts: &Hosts) -> Checked {
    hosts.timers.iter().try_for_each(|timers| timers.check()).under("/timers")?;
    refuse!(hosts.adapter_frames == Some(0), "/adapter_frames", "an adapter holds at least 1 frame (got 0)");
    let is_none = hosts.coalescing_ps == Some(Span::ZERO);
    refuse!(is_none, "/coalescing_ps", "frames are gathered for longer than 0 s");
    Ok(())
}

/// Longest transfer: 1 PB.
const MAX_TRANSFER: u64 = 1_000_000_000_000_000;
