//! Legality of connections.

use super::{check_departures, check_host, check_sizes, check_times};
use crate::error::SpecError;
use crate::network::Topology;
use crate::spec::transport::{Connection, Connections, Hosts, Load};
use crate::units::{Bytes, Span};

pub(super) fn check_connections(tcp: &Connections, topology: &Topology) -> Result<(), SpecError> {
    tcp.config.check().map_err(|error| error.under("/config"))?;
    check_hosts(&tcp.hosts).map_err(|error| error.under("/hosts"))?;
    for (i, connection) in tcp.list.iter().enumerate() {
        check_connection(connection, topology).map_err(|error| error.under(format!("/list/{i}")))?;
    }
    Ok(())
}

fn check_connection(connection: &Connection, topology: &Topology) -> Result<(), SpecError> {
    check_host(connection.from, topology).map_err(|error| error.under("/from"))?;
    check_host(connection.to, topology).map_err(|error| error.under("/to"))?;
    if connection.from == connection.to {
        let name = &topology.nodes[connection.to as usize].name;
        return Err(SpecError::new("/to", format!("a connection has two ends: '{name}' is both")));
    }
    check_times(connection.start_ps, connection.stop_ps)?;
    match &connection.load {
        Load::Endless {} => Ok(()),
        Load::Transfer { bytes } if (1..=MAX_TRANSFER).contains(&bytes.count()) => Ok(()),
        Load::Transfer { bytes } => {
            let most = Bytes::new(MAX_TRANSFER);
            Err(SpecError::new("/load/bytes", format!("a transfer is 1 B to {most} long (got {bytes})")))
        }
        Load::Writes { departures, write_size, .. } => {
            check_departures(departures).map_err(|error| error.under("/load/departures"))?;
            check_sizes(write_size).map_err(|error| error.under("/load/write_size"))
        }
    }
}

fn check_hosts(hosts: &Hosts) -> Result<(), SpecError> {
    if let Some(timers) = &hosts.timers {
        timers.check().map_err(|error| error.under("/timers"))?;
    }
    if hosts.adapter_frames == Some(0) {
        return Err(SpecError::new("/adapter_frames", "an adapter holds at least 1 frame (got 0)"));
    }
    match hosts.coalescing_ps {
        Some(Span::ZERO) => Err(SpecError::new("/coalescing_ps", "frames are gathered for longer than 0 s")),
        _ => Ok(()),
    }
}

/// Longest transfer: 1 PB.
const MAX_TRANSFER: u64 = 1_000_000_000_000_000;
