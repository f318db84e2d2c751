//! Legality of buffers of switches and of flow control by what came in.

use std::collections::BTreeSet;

use super::control::{bounded_time, some_time};
use super::{check_class, check_frame, disciplines};
use crate::error::{Checked, Part, SpecError, each, refuse};
use crate::ethernet::{headroom, pause};
use crate::network::Topology;
use crate::queue::ClassSet;
use crate::spec::buffers::{Buffer, FlowControl, IngressPool, Share, Stops, Watchdog};
use crate::spec::classes::CLASSES;
use crate::spec::{Discipline, Engine, Spec};
use crate::units::{Bytes, Span};

pub(super) fn check_buffers(spec: &Spec, topology: &Topology) -> Checked {
    let mut listed = BTreeSet::new();
    each(&spec.buffers, "/buffers", |buffer| check_buffer(buffer, spec, topology, &mut listed))?;
    Ok(())
}

fn check_buffer(buffer: &Buffer, spec: &Spec, topology: &Topology, listed: &mut BTreeSet<u32>) -> Checked {
    if spec.run.engine != Engine::Event || !spec.switching.is_plain() {
        let message = "buffers that are counted at inputs and outputs need the event engine with flows that are counted, \
                       and no shared memories, adapters and slow outputs";
        return Err(SpecError::new("", message));
    }
    each(&buffer.nodes, "/nodes", |&node| check_node(node, spec, topology, listed))?;
    refuse!(buffer.bytes == Bytes::ZERO, "/bytes", "a buffer of more than 0 B (got 0 B)");
    check_pools(buffer, spec)?;
    if let Some(flow_control) = &buffer.flow_control {
        check_flow_control(flow_control, buffer, spec, topology).under("/flow_control")?;
    } else if let Some(i) = buffer.ingress.iter().position(|pool| pool.lossless.is_some()) {
        let message = "a lossless pool asks neighbours to stop: say how, in the flow control of the buffer";
        return Err(SpecError::new(format!("/ingress/{i}/lossless"), message));
    }
    buffer.watchdog.iter().try_for_each(check_watchdog).under("/watchdog")?;
    check_queues(buffer, spec, topology)?;
    buffer.nodes.iter().try_for_each(|&node| check_room(buffer, spec, topology, node))
}

fn check_node(node: u32, spec: &Spec, topology: &Topology, listed: &mut BTreeSet<u32>) -> Checked {
    let found = super::check_node(node, topology)?;
    let message = if topology.is_host(node) {
        format!("only switches have a buffer: '{}' is a host", found.name)
    } else if !listed.insert(node) {
        format!("'{}' has two buffers", found.name)
    } else if spec.control.pause.iter().any(|pause| pause.nodes.contains(&node)) {
        format!("'{}' sends PAUSE by its queues already: leave it out of 'control.pause'", found.name)
    } else {
        return Ok(());
    };
    Err(SpecError::new("", message))
}

fn check_pools(buffer: &Buffer, spec: &Spec) -> Checked {
    let (mut at_inputs, mut at_outputs) = (ClassSet::NONE, ClassSet::NONE);
    each(&buffer.ingress, "/ingress", |pool| check_pool(&pool.classes, pool.share, pool.bytes, &mut at_inputs))?;
    each(&buffer.egress, "/egress", |pool| check_pool(&pool.classes, pool.share, pool.bytes, &mut at_outputs))?;
    if let Some(second) = (0..).zip(&buffer.ingress).filter(|(_, pool)| pool.bytes.is_none()).map(|(i, _)| i).nth(1) {
        let message = "two pools take what is left of the buffer: give one of them a size";
        return Err(SpecError::new(format!("/ingress/{second}/bytes"), message));
    }
    match spec.traffic.iter().find(|group| !buffer.ingress.is_empty() && !at_inputs.contains(group.class)) {
        Some(group) => {
            let message =
                format!("traffic '{}' is of class {}, which is in no pool at the inputs", group.name, group.class);
            Err(SpecError::new("/ingress", message))
        }
        None => Ok(()),
    }
}

fn check_pool(classes: &[u8], share: Share, pool: Option<Bytes>, known: &mut ClassSet) -> Checked {
    each(classes, "/classes", |&class| {
        check_class(class)?;
        refuse!(known.contains(class), "", "class {class} is in two pools, or named twice");
        *known = known.with(ClassSet::of(class));
        Ok(())
    })?;
    match share {
        Share::Dynamic { alpha } if !(alpha > 0.0 && alpha.is_finite()) => {
            Err(SpecError::new("/share/alpha", format!("a number above 0 (got {alpha})")))
        }
        Share::Static { bytes } if pool.is_some_and(|pool| bytes > pool) => {
            let pool = pool.unwrap_or(Bytes::ZERO);
            Err(SpecError::new("/share/bytes", format!("at most the size of its pool, {pool} (got {bytes})")))
        }
        _ => Ok(()),
    }
}

fn check_flow_control(how: &FlowControl, buffer: &Buffer, spec: &Spec, topology: &Topology) -> Checked {
    if buffer.ingress.iter().all(|pool| pool.lossless.is_none()) {
        return Err(SpecError::new("", "no pool is lossless: nobody would be asked to stop"));
    }
    let lossless = buffer.ingress.iter().filter(|pool| pool.lossless.is_some()).map(|pool| pool.classes.len());
    if how.stops == Stops::Classes && lossless.sum::<usize>() == usize::from(CLASSES) {
        return Err(SpecError::new("/stops", "all eight classes are lossless: stop the whole link"));
    }
    check_frame("frame_bytes", how.frame_bytes)?;
    check_frame("longest_bytes", how.longest_bytes)?;
    bounded_time("delay_ps", how.delay_ps)?;
    how.refresh_ps.map_or(Ok(()), |every| some_time("refresh_ps", every))?;
    let Some(quanta) = how.quanta else { return Ok(()) };
    refuse!(quanta == 0, "/quanta", "a stop is at least 1 quantum long (got 0)");
    for input in buffer.nodes.iter().flat_map(|&node| headroom::inputs(topology, node)) {
        let port = &topology.ports[input as usize];
        let length = pause::length(quanta, port.link.rate_bps);
        let asked = how.repeats(port.link.rate_bps).unwrap_or(Span::ZERO);
        let back = headroom::Loop::of(spec, topology, how, input);
        let late = (back.longest + back.asks + back.framing * 2) / back.back;
        if asked + late >= length {
            let message = format!(
                "a stop of {quanta} quanta lasts {length} on '{}', and is repeated after {asked} and up to {late} behind a frame: \
                 it would run out in between",
                port.name
            );
            return Err(SpecError::new(if how.refresh_ps.is_some() { "/refresh_ps" } else { "/quanta" }, message));
        }
    }
    Ok(())
}

fn check_watchdog(watchdog: &Watchdog) -> Checked {
    some_time("poll_ps", watchdog.poll_ps)?;
    let times = [("detection_ps", Some(watchdog.detection_ps)), ("restoration_ps", watchdog.restoration_ps)];
    for (name, time) in times {
        if let Some(time) = time.filter(|&time| time < watchdog.poll_ps) {
            let message = format!("at least the time between two looks, {} (got {time})", watchdog.poll_ps);
            return Err(SpecError::new(format!("/{name}"), message));
        }
    }
    Ok(())
}

/// A class that is stopped has a queue of its own at the transmitter.
fn check_queues(buffer: &Buffer, spec: &Spec, topology: &Topology) -> Checked {
    if buffer.flow_control.as_ref().is_none_or(|how| how.stops == Stops::Link) {
        return Ok(());
    }
    let disciplines = disciplines(spec);
    let has_queue = |port: u32, class: u8| match disciplines.get(&port) {
        Some(Discipline::Classes(classes)) => classes.list.iter().any(|queue| queue.class == class),
        _ => false,
    };
    let senders = buffer.nodes.iter().flat_map(|&node| headroom::inputs(topology, node));
    let senders: Vec<u32> = senders.filter(|&port| !topology.is_host(topology.ports[port as usize].from)).collect();
    let lossless = |pool: &&IngressPool| pool.lossless.is_some();
    for (i, pool) in (0..).zip(&buffer.ingress).filter(|(_, pool)| lossless(pool)) {
        for (k, &class) in pool.classes.iter().enumerate() {
            if let Some(&port) = senders.iter().find(|&&port| !has_queue(port, class)) {
                let name = &topology.ports[port as usize].name;
                let message = format!(
                    "class {class} is to be stopped at '{name}', which has no queue for it: give that port queues for classes, or \
                     stop the whole link"
                );
                return Err(SpecError::new(format!("/ingress/{i}/classes/{k}"), message));
            }
        }
    }
    Ok(())
}

/// Headroom and what is reserved have room in the buffer, and leave some.
fn check_room(buffer: &Buffer, spec: &Spec, topology: &Topology, node: u32) -> Checked {
    let needed = headroom::of_inputs(spec, topology, buffer, node);
    let committed = buffer.committed(&needed);
    let shares = buffer.ingress.iter().any(|pool| pool.bytes.is_none());
    if committed < buffer.bytes || committed == buffer.bytes && !shares {
        return Ok(());
    }
    let name = &topology.nodes[node as usize].name;
    let of_headroom = |pool: &IngressPool| {
        let given = pool.lossless.as_ref().map(|how| how.headroom_bytes);
        given.map_or(0, |given| needed.iter().map(|needed| given.unwrap_or(*needed).count()).sum::<u64>())
            * pool.classes.len() as u64
    };
    let headroom = Bytes::new(buffer.ingress.iter().map(of_headroom).sum());
    let more = Bytes::new((committed.count() - buffer.bytes.count()).max(1));
    let message = format!(
        "the {} inputs of '{name}' take {committed}, {headroom} of it headroom, and leave nothing to share: a buffer of {} lacks {more} \
         or more (shorter cables and fewer lossless classes need less headroom)",
        needed.len(),
        buffer.bytes
    );
    Err(SpecError::new("/bytes", message))
}
