//! Legality of messages.

use super::{MAX_FRAME, check_host, check_times};
use crate::cc;
use crate::error::{SpecError, refuse};
use crate::network::Topology;
use crate::spec::messages::{Arrivals, Balancing, Gaps, MessageSizes, MessageSource, Messages, Packets};
use crate::spec::{Engine, Spec};
use crate::units::{Bytes, Span, Time};

/// Longest message: 1 PB.
const MAX_MESSAGE: Bytes = Bytes::new(1_000_000_000_000_000);
/// Most messages of a list.
const MAX_LISTED: usize = 1 << 24;

/// What messages do not stand beside.
pub(super) fn check_messages(spec: &Spec, topology: &Topology) -> Result<(), SpecError> {
    for (i, messages) in spec.traffic.iter().enumerate().filter_map(|(i, group)| Some((i, group.messages.as_ref()?))) {
        let at = format!("/traffic/{i}/messages");
        let refused = |what: &str| Err(SpecError::new(&at, format!("messages do not stand beside {what}")));
        if spec.run.engine != Engine::Event {
            return refused("an engine other than 'event' that counts flows");
        }
        if !spec.switching.is_plain() {
            return refused("shared memories, adapters and slow outputs of 'switching'");
        }
        if messages.has_ends() && !spec.control.limited_hosts().is_empty() {
            return refused("rate limiters of hosts (BCN, QCN, DCQCN) if they have connections");
        }
        if !spec.record.captures.is_empty() {
            return refused("captures of frames");
        }
        check(messages, topology).map_err(|error| error.under(&at))?;
        if messages.rdma.is_some() {
            check_adapters(messages, topology).map_err(|error| error.under(&at))?;
        }
    }
    Ok(())
}

fn check(messages: &Messages, topology: &Topology) -> Result<(), SpecError> {
    if let Some(config) = &messages.config {
        config.check().map_err(|error| error.under("/config"))?;
    }
    if let Some(config) = &messages.rdma {
        refuse!(messages.config.is_some(), "/rdma", "messages go over tcp or over this (got both)");
        config.check().map_err(|error| error.under("/rdma"))?;
    }
    let Packets { payload_bytes, header_bytes } = messages.packets;
    let telemetry = messages.rdma.as_ref().map_or(0, |config| config.telemetry().count());
    let frame = payload_bytes.count().saturating_add(header_bytes.count()).saturating_add(telemetry);
    if payload_bytes == Bytes::ZERO || frame > MAX_FRAME.count() {
        let message = format!("a frame holds 1 B or more of data, and is at most {MAX_FRAME} long (got {frame} B)");
        return Err(SpecError::new("/packets/payload_bytes", message));
    }
    if messages.config.as_ref().is_some_and(|config| matches!(config.congestion_control, cc::Config::Rapid(_))) {
        return Err(SpecError::new("/config/congestion_control", "Rapid probes with streams that outlast a message"));
    }
    if let Balancing::Flowlets { gap_ps: Span::ZERO, .. } = messages.balancing {
        return Err(SpecError::new("/balancing/gap_ps", "flowlets are apart by more than 0 s"));
    }
    refuse!(messages.rows == 0, "/rows", "at least 1 row is kept (got 0)");
    check_arrivals(&messages.arrivals, topology).map_err(|error| error.under("/arrivals"))?;
    if !messages.has_ends() && messages.pairs().is_empty() {
        let message = "messages without a transport are frames of flows from one host to another (got 0 pairs)";
        return Err(SpecError::new("/arrivals", message));
    }
    Ok(())
}

fn check_arrivals(arrivals: &Arrivals, topology: &Topology) -> Result<(), SpecError> {
    match arrivals {
        Arrivals::Listed { list } => check_list(list, topology).map_err(|error| error.under("/list")),
        Arrivals::Chained { tasks, rounds, .. } => {
            check_tasks(tasks, topology).map_err(|error| error.under("/tasks"))?;
            let mut before = 0;
            for (i, &(end, _)) in rounds.iter().enumerate() {
                if end <= before || end as usize > tasks.len() {
                    let message = format!("rounds end in order, after {before} and by {} (got {end})", tasks.len());
                    return Err(SpecError::new(format!("/rounds/{i}/0"), message));
                }
                before = end;
            }
            Ok(())
        }
        Arrivals::Drawn { hosts, sources, sizes } => {
            for (i, list) in hosts.iter().enumerate() {
                for (j, &host) in list.iter().enumerate() {
                    check_host(host, topology).map_err(|error| error.under(format!("/hosts/{i}/{j}")))?;
                }
            }
            check_sizes(sizes).map_err(|error| error.under("/sizes"))?;
            for (i, source) in sources.iter().enumerate() {
                check_source(source, hosts).map_err(|error| error.under(format!("/sources/{i}")))?;
            }
            Ok(())
        }
    }
}

/// An adapter serves the line of its host.
fn check_adapters(messages: &Messages, topology: &Topology) -> Result<(), SpecError> {
    for (from, _) in messages.pairs() {
        let links = topology.ports.iter().filter(|port| port.from == from).count();
        if links != 1 {
            let name = &topology.nodes[from as usize].name;
            let message =
                format!("'{name}' has {links} links: a host of such messages has one (one host for each adapter)");
            return Err(SpecError::new("/rdma", message));
        }
    }
    Ok(())
}

fn check_list(list: &[(Time, u32, u32, Bytes)], topology: &Topology) -> Result<(), SpecError> {
    refuse!(list.len() > MAX_LISTED, "", "at most {MAX_LISTED} messages are listed (got {})", list.len());
    let mut before = Time::ZERO;
    for (i, &(start, from, to, bytes)) in list.iter().enumerate() {
        check_host(from, topology).map_err(|error| error.under(format!("/{i}/1")))?;
        check_host(to, topology).map_err(|error| error.under(format!("/{i}/2")))?;
        if from == to {
            let name = &topology.nodes[to as usize].name;
            return Err(SpecError::new(format!("/{i}/2"), format!("'{name}' would send to itself")));
        }
        refuse!(start < before, format!("/{i}/0"), "messages stand in the order of time: {start} comes after {before}");
        before = start;
        check_size(bytes).map_err(|error| error.under(format!("/{i}/3")))?;
    }
    Ok(())
}

fn check_tasks(tasks: &[(u32, u32, Bytes, Span, Vec<u32>)], topology: &Topology) -> Result<(), SpecError> {
    refuse!(tasks.len() > MAX_LISTED, "", "at most {MAX_LISTED} tasks are listed (got {})", tasks.len());
    for (i, (from, to, bytes, _, after)) in tasks.iter().enumerate() {
        check_host(*from, topology).map_err(|error| error.under(format!("/{i}/0")))?;
        check_host(*to, topology).map_err(|error| error.under(format!("/{i}/1")))?;
        if from != to {
            check_size(*bytes).map_err(|error| error.under(format!("/{i}/2")))?;
        } else if *bytes > Bytes::ZERO {
            let message = format!("'{}' would send to itself", topology.nodes[*to as usize].name);
            return Err(SpecError::new(format!("/{i}/2"), message));
        }
        if let Some((j, task)) = after.iter().enumerate().find(|&(_, &task)| task as usize >= i) {
            let message = format!("a task waits for tasks before it, here up to {} (got {task})", i as i64 - 1);
            return Err(SpecError::new(format!("/{i}/4/{j}"), message));
        }
    }
    Ok(())
}

fn check_size(bytes: Bytes) -> Result<(), SpecError> {
    refuse!(bytes == Bytes::ZERO || bytes > MAX_MESSAGE, "", "a message is 1 B to {MAX_MESSAGE} long (got {bytes})");
    Ok(())
}

fn check_sizes(sizes: &MessageSizes) -> Result<(), SpecError> {
    let points = match sizes {
        MessageSizes::Fixed(bytes) => return check_size(*bytes).map_err(|error| error.under("/fixed")),
        MessageSizes::Table(points) => points,
    };
    let mut before = (0.0, 0.0);
    for (i, &(bytes, share)) in points.iter().enumerate() {
        let at = |part: u32| format!("/table/{i}/{part}");
        if !(bytes >= before.0 && bytes <= MAX_MESSAGE.count() as f64) {
            let message = format!("sizes do not fall, and are at most {MAX_MESSAGE} (got {bytes} after {})", before.0);
            return Err(SpecError::new(at(0), message));
        }
        if !(share >= before.1 && share <= 1.0) {
            let message = format!("shares do not fall, and are at most 1 (got {share} after {})", before.1);
            return Err(SpecError::new(at(1), message));
        }
        before = (bytes, share);
    }
    refuse!(before.1 != 1.0, "/table", "the last share is 1, that of all messages (got {})", before.1);
    Ok(())
}

fn check_source(source: &MessageSource, hosts: &[Vec<u32>]) -> Result<(), SpecError> {
    let list = |place: u32, at: &str| {
        hosts.get(place as usize).filter(|list| !list.is_empty()).ok_or_else(|| {
            SpecError::new(
                at,
                format!("names a list of hosts with at least one, of {} lists (got {place})", hosts.len()),
            )
        })
    };
    let from = list(source.from, "/from")?;
    let mut receivers: Vec<u32> = Vec::new();
    for (i, &(weight, place)) in source.to.iter().enumerate() {
        refuse!(!(weight > 0.0 && weight.is_finite()), format!("/to/{i}/0"), "a weight is above 0 (got {weight})");
        receivers.extend(list(place, &format!("/to/{i}/1"))?);
    }
    receivers.sort_unstable();
    receivers.dedup();
    // One that sends alone never receives.
    receivers.retain(|&host| from.len() > 1 || from[0] != host);
    if source.receivers == 0 || source.receivers as usize > receivers.len() {
        let message = format!("1 to {} different hosts can receive (got {})", receivers.len(), source.receivers);
        return Err(SpecError::new("/receivers", message));
    }
    let mut senders = from.clone();
    senders.sort_unstable();
    senders.dedup();
    // Of several that send, the receiver may be one.
    let most = senders.len() - usize::from(receivers.iter().any(|host| senders.binary_search(host).is_ok()));
    if source.senders == 0 || source.senders as usize > most || senders.len() < from.len() {
        let message = format!("1 to {most} different hosts can send to one of the receivers (got {})", source.senders);
        return Err(SpecError::new("/senders", message));
    }
    check_times(source.start_ps, source.stop_ps)?;
    let (mean, at) = match source.gaps {
        Gaps::Constant { mean_gap_ps } | Gaps::Poisson { mean_gap_ps } => (mean_gap_ps, None),
        Gaps::Lognormal { mean_gap_ps, sigma } => {
            let at = format!("the standard deviation of the logarithm is 0 to 10 (got {sigma})");
            (mean_gap_ps, (!(0.0..=10.0).contains(&sigma)).then_some(("/gaps/sigma", at)))
        }
        Gaps::Hyperexponential { mean_gap_ps, variation } => {
            let at = format!("the squared coefficient of variation is 1 to 10 000 (got {variation})");
            (mean_gap_ps, (!(1.0..=10_000.0).contains(&variation)).then_some(("/gaps/variation", at)))
        }
    };
    if let Some((at, message)) = at {
        return Err(SpecError::new(at, message));
    }
    if !(mean >= 1.0 && mean.is_finite()) {
        let message = format!("a mean gap is a number of ps, at least 1 (got {mean})");
        return Err(SpecError::new("/gaps/mean_gap_ps", message));
    }
    Ok(())
}
