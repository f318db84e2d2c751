//! Legality of what happens in the course of a run.

use std::collections::{BTreeMap, BTreeSet};

use super::{MAX_DURATION, check_class, check_port, disciplines};
use crate::error::{Checked, Part, SpecError, each, refuse};
use crate::network::Topology;
use crate::spec::classes::CLASSES;
use crate::spec::events::{Change, Event};
use crate::spec::{Discipline, Engine, Spec};
use crate::units::{Bytes, Span, Time};

pub(super) fn check_events(spec: &Spec, topology: &Topology) -> Checked {
    if spec.events.is_empty() {
        return Ok(());
    }
    refuse!(spec.run.engine != Engine::Event, "/events", "only the event engine that counts flows has events");
    if !spec.switching.is_plain() {
        let message = "networks with shared memories, adapters or slow outputs have no events";
        return Err(SpecError::new("/events", message));
    }
    let disciplines = disciplines(spec);
    each(&spec.events, "/events", |event| check_event(event, spec, topology, &disciplines))?;
    check_turns(&spec.events, topology)
}

/// A link goes down when it is up, and up when it is down; a class is held when it is not, and released when it is. Rates and
/// limits have no end here: one replaces the other.
fn check_turns(events: &[Event], topology: &Topology) -> Checked {
    let (mut down, mut held, mut stormy) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut in_time: Vec<(usize, &Event)> = events.iter().enumerate().collect();
    in_time.sort_by_key(|(_, event)| event.at_ps);
    for (i, event) in in_time {
        for (j, &port) in event.change.ports().iter().enumerate() {
            let is_new = |turned: bool, is_already: &str| {
                let name = &topology.ports[port as usize].name;
                let message = format!("events overlap: at {} {is_already} ('{name}')", event.at_ps);
                if turned { Ok(()) } else { Err(SpecError::new(format!("/events/{i}/change/ports/{j}"), message)) }
            };
            match &event.change {
                Change::Down { .. } => is_new(down.insert(port), "the link is down already")?,
                Change::Up { .. } => is_new(down.remove(&port), "the link is up already")?,
                Change::Hold { classes, .. } => {
                    classes.iter().try_for_each(|&class| {
                        is_new(held.insert((port, class)), &format!("class {class} is held already"))
                    })?;
                }
                Change::Release { classes, .. } => {
                    classes.iter().try_for_each(|&class| {
                        is_new(held.remove(&(port, class)), &format!("class {class} is not held"))
                    })?;
                }
                Change::Storm { .. } => is_new(stormy.insert(port), "a storm goes on already")?,
                Change::Calm { .. } => is_new(stormy.remove(&port), "there is no storm")?,
                Change::Reroute { .. } | Change::Rate { .. } | Change::Limit { .. } => {}
            }
        }
    }
    Ok(())
}

fn check_event(event: &Event, spec: &Spec, topology: &Topology, disciplines: &BTreeMap<u32, &Discipline>) -> Checked {
    refuse!(event.at_ps > Time::ZERO + MAX_DURATION, "/at_ps", "an event within {MAX_DURATION} (got {})", event.at_ps);
    let by_buffer = |node: u32| spec.buffers.iter().any(|own| own.flow_control.is_some() && own.nodes.contains(&node));
    if event.change.is_of_links() && (!spec.control.is_off() || (0..).take(topology.nodes.len()).any(by_buffer)) {
        let message =
            "links go down in networks without BCN, QCN, DCQCN, PAUSE and priority flow control (lossless pools) only";
        return Err(SpecError::new("/change", message));
    }
    let limited = spec.control.limited_hosts();
    for (j, &port) in event.change.ports().iter().enumerate() {
        let at = format!("/change/ports/{j}");
        let found = check_port(port, topology).under(&at)?;
        if matches!(event.change, Change::Storm { .. } | Change::Calm { .. }) {
            refuse!(!topology.is_host(found.from), at, "hosts ask to stop in a storm (got '{}')", found.name);
            continue;
        }
        let is_held = spec.control.pause.iter().any(|pause| pause.nodes.contains(&found.to)) || by_buffer(found.to);
        if topology.is_host(found.from) && (is_held || limited.contains(&found.from)) {
            let message = "a host that has rate limiters or can be paused keeps its frames in queues of its own";
            return Err(SpecError::new(at, format!("{message} (got '{}')", found.name)));
        }
    }
    match &event.change {
        Change::Rate { rate_bps, .. } if rate_bps.bps() == 0 => {
            Err(SpecError::new("/change/rate_bps", "a rate above 0 (got 0 bit/s); a link that carries nothing is down"))
        }
        Change::Limit { ports, class, .. } => ports.iter().try_for_each(|port| {
            let error = |message: String| Err(SpecError::new("/change/class", message));
            let name = &topology.ports[*port as usize].name;
            match (disciplines.get(port), class) {
                (Some(Discipline::Classes(classes)), Some(class)) => {
                    match classes.list.iter().any(|known| known.class == *class) {
                        true => Ok(()),
                        false => error(format!("port '{name}' has no queue for class {class}")),
                    }
                }
                (Some(Discipline::Classes(_)), None) => {
                    error(format!("port '{name}' has queues for classes: of which?"))
                }
                (_, Some(class)) => error(format!("port '{name}' has one queue for all classes (got {class})")),
                (_, None) => Ok(()),
            }
        }),
        Change::Hold { ports, classes } | Change::Release { ports, classes } => {
            let error = |message: String| Err(SpecError::new("/change/classes", message));
            if classes.is_empty() {
                return error("which classes? name one at least".into());
            }
            classes.iter().try_for_each(|&class| check_class(class)).under("/change/classes")?;
            let is_all = (0..CLASSES).all(|class| classes.contains(&class));
            if is_all && !spec.control.pause.is_empty() {
                return error("ports that PAUSE may hold are held for single classes only".into());
            }
            let is_classed = |port: &&u32| matches!(disciplines.get(port), Some(Discipline::Classes(_)));
            match ports.iter().find(|port| !is_all && !is_classed(port)) {
                Some(&port) => error(format!(
                    "port '{}' has one queue for all classes, which are held together",
                    topology.ports[port as usize].name
                )),
                None => Ok(()),
            }
        }
        Change::Storm { ports, classes, every_ps } => check_storm(ports, classes, *every_ps, topology, disciplines),
        _ => Ok(()),
    }
}

fn check_storm(
    ports: &[u32],
    classes: &[u8],
    every: Span,
    topology: &Topology,
    disciplines: &BTreeMap<u32, &Discipline>,
) -> Checked {
    let error = |place: &str, message: String| Err(SpecError::new(format!("/change/{place}"), message));
    if classes.is_empty() || classes.iter().any(|&class| class >= CLASSES) {
        return error("classes", format!("some of the classes 0 to {} (got {classes:?})", CLASSES - 1));
    }
    let is_all = (0..CLASSES).all(|class| classes.contains(&class));
    for &port in ports {
        let (own, back) = (&topology.ports[port as usize], &topology.ports[port as usize ^ 1]);
        let least = (Bytes::new(64) + own.link.framing_bytes) / own.link.rate_bps;
        if every <= least {
            return error(
                "every_ps",
                format!("longer than such a frame takes on '{}', {least} (got {every})", own.name),
            );
        }
        if !is_all && !matches!(disciplines.get(&(port ^ 1)), Some(Discipline::Classes(_))) {
            return error(
                "classes",
                format!("port '{}' has one queue for all classes, which stop together", back.name),
            );
        }
    }
    Ok(())
}
