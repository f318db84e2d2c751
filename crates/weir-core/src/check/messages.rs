//! Legality of messages.

use super::{MAX_FRAME, check_host, check_times};
use crate::cc;
use crate::error::{Checked, Part, SpecError, each, refuse};
use crate::network::Topology;
use crate::spec::messages::{Arrivals, Balancing, Gaps, MessageSizes, MessageSource, Messages, Packets};
use crate::spec::{Engine, Spec};
use crate::tcp::Config;
use crate::units::{Bytes, Span, Time};

/// Longest message: 1 PB.
const MAX_MESSAGE: Bytes = Bytes::new(1_000_000_000_000_000);
/// Most messages of a list.
const MAX_LISTED: usize = 1 << 24;

/// What messages do not stand beside.
pub(super) fn check_messages(spec: &Spec, topology: &Topology) -> Checked {
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
        check(messages, topology).under(&at)?;
        if messages.rdma.is_some() {
            check_adapters(messages, topology).under(&at)?;
        }
    }
    Ok(())
}

fn check(messages: &Messages, topology: &Topology) -> Checked {
    messages.config.iter().try_for_each(Config::check).under("/config")?;
    if let Some(config) = &messages.rdma {
        refuse!(messages.config.is_some(), "/rdma", "messages go over tcp or over this (got both)");
        config.check().under("/rdma")?;
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
    check_arrivals(&messages.arrivals, topology).under("/arrivals")?;
    if !messages.has_ends() && messages.pairs().is_empty() {
        let message = "messages without a transport are frames of flows from one host to another (got 0 pairs)";
        return Err(SpecError::new("/arrivals", message));
    }
    Ok(())
}

fn check_arrivals(arrivals: &Arrivals, topology: &Topology) -> Checked {
    match arrivals {
        Arrivals::Listed { list } => check_list(list, topology).under("/list"),
        Arrivals::Chained { tasks, rounds, .. } => {
            check_tasks(tasks, topology).under("/tasks")?;
            let mut before = 0;
            each(rounds, "/rounds", |&(end, _)| {
                let (is_next, all) = (end > before && end as usize <= tasks.len(), tasks.len());
                refuse!(!is_next, "/0", "rounds end in order, after {before} and by {all} (got {end})");
                before = end;
                Ok(())
            })
        }
        Arrivals::Drawn { hosts, sources, sizes } => {
            each(hosts, "/hosts", |list| each(list, "", |&host| check_host(host, topology)))?;
            check_sizes(sizes).under("/sizes")?;
            each(sources, "/sources", |source| check_source(source, hosts))?;
            Ok(())
        }
    }
}

/// An adapter serves the line of its host.
fn check_adapters(messages: &Messages, topology: &Topology) -> Checked {
    for (from, _) in messages.pairs() {
        let links = topology.ports.iter().filter(|port| port.from == from).count();
        let name = &topology.nodes[from as usize].name;
        let message = "a host of such messages has one (one host for each adapter)";
        refuse!(links != 1, "/rdma", "'{name}' has {links} links: {message}");
    }
    Ok(())
}

fn check_list(list: &[(Time, u32, u32, Bytes)], topology: &Topology) -> Checked {
    refuse!(list.len() > MAX_LISTED, "", "at most {MAX_LISTED} messages are listed (got {})", list.len());
    let mut before = Time::ZERO;
    each(list, "", |&(start, from, to, bytes)| {
        check_host(from, topology).under("/1")?;
        let name = &check_host(to, topology).under("/2")?.name;
        refuse!(from == to, "/2", "'{name}' would send to itself");
        refuse!(start < before, "/0", "messages stand in the order of time: {start} comes after {before}");
        before = start;
        check_size(bytes).under("/3")
    })
}

fn check_tasks(tasks: &[(u32, u32, Bytes, Span, Vec<u32>)], topology: &Topology) -> Checked {
    refuse!(tasks.len() > MAX_LISTED, "", "at most {MAX_LISTED} tasks are listed (got {})", tasks.len());
    each(tasks.iter().enumerate(), "", |(i, (from, to, bytes, _, after))| {
        check_host(*from, topology).under("/0")?;
        let name = &check_host(*to, topology).under("/1")?.name;
        if from != to {
            check_size(*bytes).under("/2")?;
        }
        refuse!(from == to && *bytes > Bytes::ZERO, "/2", "'{name}' would send to itself");
        each(after, "/4", |&task| {
            let most = i as i64 - 1;
            refuse!(task as usize >= i, "", "a task waits for tasks before it, here up to {most} (got {task})");
            Ok(())
        })
    })
}

fn check_size(bytes: Bytes) -> Checked {
    refuse!(bytes == Bytes::ZERO || bytes > MAX_MESSAGE, "", "a message is 1 B to {MAX_MESSAGE} long (got {bytes})");
    Ok(())
}

fn check_sizes(sizes: &MessageSizes) -> Checked {
    let points = match sizes {
        MessageSizes::Fixed(bytes) => return check_size(*bytes).under("/fixed"),
        MessageSizes::Table(points) => points,
    };
    let mut before = (0.0, 0.0);
    each(points, "/table", |&(bytes, share)| {
        let (size, part) = before;
        let grows = bytes >= size && bytes <= MAX_MESSAGE.count() as f64;
        refuse!(!grows, "/0", "sizes do not fall, and are at most {MAX_MESSAGE} (got {bytes} after {size})");
        let grows = share >= part && share <= 1.0;
        refuse!(!grows, "/1", "shares do not fall, and are at most 1 (got {share} after {part})");
        before = (bytes, share);
        Ok(())
    })?;
    refuse!(before.1 != 1.0, "/table", "the last share is 1, that of all messages (got {})", before.1);
    Ok(())
}

fn check_source(source: &MessageSource, hosts: &[Vec<u32>]) -> Checked {
    let list = |place: u32, at: &str| {
        let message = || format!("names a list of hosts with at least one, of {} lists (got {place})", hosts.len());
        hosts.get(place as usize).filter(|list| !list.is_empty()).ok_or_else(|| SpecError::new(at, message()))
    };
    let from = list(source.from, "/from")?;
    let mut receivers: Vec<u32> = Vec::new();
    each(&source.to, "/to", |&(weight, place)| {
        refuse!(!(weight > 0.0 && weight.is_finite()), "/0", "a weight is above 0 (got {weight})");
        receivers.extend(list(place, "/1")?);
        Ok(())
    })?;
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
