//! Legality of queue disciplines.

use super::{check_class, check_port};
use crate::error::{Checked, Part, SpecError, each, refuse};
use crate::network::{PortSpec, Topology};
use crate::queue::ClassSet;
use crate::spec::aqm::Aqm;
use crate::spec::classes::{CLASSES, Class, Classes, LEAST_QUANTUM, Order, Trim};
use crate::spec::{Discipline, Engine, Marking, Overrun, QueueRule, Spec, Traffic};

pub(super) fn check_queues(spec: &Spec, topology: &Topology) -> Checked {
    each(&spec.queues, "/queues", |rule| check_rule(rule, spec, topology))?;
    Ok(())
}

fn check_rule(rule: &QueueRule, spec: &Spec, topology: &Topology) -> Checked {
    each(&rule.ports, "/ports", |&port| check_port(port, topology))?;
    match &rule.discipline {
        Discipline::DropTail { marking, overrun, .. } => {
            marking.iter().try_for_each(|marking| check_marking(marking, rule, topology))?;
            overrun.iter().try_for_each(|overrun| check_overrun(overrun, rule, spec, topology))
        }
        Discipline::Managed { aqm, .. } => {
            aqm.check().under("/discipline/aqm")?;
            if !spec.switching.is_plain() {
                let message = "beside shared memories, adapters and slow outputs queues are drop-tail";
                return Err(SpecError::new("/discipline", message));
            }
            check_managed(rule, spec, topology)
        }
        Discipline::Classes(classes) => {
            check_classes(classes, spec).under("/discipline")?;
            check_managed(rule, spec, topology)?;
            check_services(rule, spec, topology)
        }
    }
}

fn check_classes(classes: &Classes, spec: &Spec) -> Checked {
    if let Order::Class { quantum_bytes } = classes.order
        && quantum_bytes < LEAST_QUANTUM
    {
        let message = format!("a quantum of at least {LEAST_QUANTUM} (got {quantum_bytes})");
        return Err(SpecError::new("/order/quantum_bytes", message));
    }
    let mut known = ClassSet::NONE;
    for (i, class) in classes.list.iter().enumerate() {
        let at = |field: &str| format!("/list/{i}{field}");
        check_class(class.class).under(at("/class"))?;
        refuse!(known.contains(class.class), at("/class"), "class {} has two queues", class.class);
        known = known.with(ClassSet::of(class.class));
        class.trim.iter().try_for_each(|trim| check_trim(trim, class, classes, spec)).under(at("/trim"))?;
        if class.weight == Some(0) {
            let message = "a weight of at least 1 (got 0); a class without a weight has strict priority";
            return Err(SpecError::new(at("/weight"), message));
        }
        let is_needless = class.weight.is_some() && classes.order == Order::Arrival;
        refuse!(is_needless, at("/weight"), "frames leave in order of arrival: no class has a weight");
        let checked = match &class.discipline {
            Discipline::DropTail { overrun: Some(_), .. } => {
                Err(SpecError::new("/overrun", "inputs overrun before ports with one queue"))
            }
            Discipline::DropTail { marking, .. } => marking.iter().try_for_each(Marking::check).under("/marking"),
            Discipline::Managed { aqm, .. } => aqm.check().under("/aqm"),
            Discipline::Classes(_) => Err(SpecError::new("", "the queue of a class has no classes of its own")),
        };
        checked.under(at("/discipline"))?;
    }
    let of_control = |group: &Traffic| group.messages.as_ref()?.rdma.as_ref().map(|rdma| rdma.control_class);
    for group in &spec.traffic {
        let frames = [("", Some(group.class)), ("the answers of ", of_control(group).filter(|&class| class < CLASSES))];
        let is_missing = |class: u8| !known.contains(class.min(CLASSES - 1));
        let missing = frames.iter().find_map(|&(of, class)| Some((of, class.filter(|&class| is_missing(class))?)));
        if let Some((of, class)) = missing {
            let name = &group.name;
            let verb = if of.is_empty() { "is" } else { "are" };
            let message =
                format!("{of}traffic '{name}' {verb} of class {class}, which has no queue here: add one for it");
            return Err(SpecError::new("/list", message));
        }
    }
    Ok(())
}

fn check_trim(trim: &Trim, class: &Class, classes: &Classes, spec: &Spec) -> Checked {
    let has_queue = |number: u8| classes.list.iter().any(|class| class.class == number);
    if trim.class == class.class || !has_queue(trim.class) {
        let message = format!("another class with a queue here, for headers (got {})", trim.class);
        return Err(SpecError::new("/class", message));
    }
    if !(1..=MOST_HEADER).contains(&trim.size_bytes.count()) {
        return Err(SpecError::new("/size_bytes", format!("1 B to {MOST_HEADER} B (got {})", trim.size_bytes)));
    }
    refuse!(classes.order == Order::Arrival, "", "headers go before other frames: 'order: class'");
    if !matches!(class.discipline, Discipline::DropTail { .. } | Discipline::Managed { aqm: Aqm::Threshold(_), .. }) {
        return Err(SpecError::new("", "queues that trim are drop-tail, with marks or without"));
    }
    refuse!(!spec.buffers.is_empty(), "", "queues trim where they have limits of their own: without 'buffers'");
    Ok(())
}

/// Longest header of a packet whose payload was cut.
const MOST_HEADER: u64 = 512;

/// A slow output serves one queue.
fn check_services(rule: &QueueRule, spec: &Spec, topology: &Topology) -> Checked {
    let is_slow = |port: &u32| spec.switching.services.iter().any(|service| service.port == *port);
    each(&rule.ports, "/ports", |port| {
        let name = &topology.ports[*port as usize].name;
        refuse!(is_slow(port), "", "an output that is slower for a while has one queue (got '{name}')");
        Ok(())
    })
}

fn check_marking(marking: &Marking, rule: &QueueRule, topology: &Topology) -> Checked {
    each(&rule.ports, "/ports", |&port| {
        let port = &topology.ports[port as usize];
        refuse!(topology.is_host(port.from), "", "only queues of switches mark: '{}' is a host's", port.name);
        Ok(())
    })?;
    marking.check().under("/discipline/marking")
}

fn check_overrun(overrun: &Overrun, rule: &QueueRule, spec: &Spec, topology: &Topology) -> Checked {
    let at = |place: &str, message: String| Err(SpecError::new(format!("/discipline/overrun{place}"), message));
    if !(1.0..=MOST_OVERRUN).contains(&overrun.mean_frames) {
        return at("/mean_frames", format!("a run has 1 to {MOST_OVERRUN} frames (got {})", overrun.mean_frames));
    }
    if !(overrun.probability > 0.0 && overrun.probability <= 1.0) {
        return at("/probability", format!("a probability above 0 and up to 1 (got {})", overrun.probability));
    }
    if spec.run.engine != Engine::Event || !spec.switching.is_plain() {
        let message = "inputs lose frames in the event engine with flows that are counted, and only without shared \
                       memories, adapters and slow outputs";
        return at("", message.to_string());
    }
    if overrun.inputs.is_empty() {
        return at("/inputs", "at least one input loses frames".to_string());
    }
    for (i, &input) in overrun.inputs.iter().enumerate() {
        let place = format!("/inputs/{i}");
        check_port(input, topology).under(format_args!("/discipline/overrun{place}"))?;
        let PortSpec { name, to, .. } = &topology.ports[input as usize];
        if let Some(&port) = rule.ports.iter().find(|&&port| topology.ports[port as usize].from != *to) {
            let queue = &topology.ports[port as usize].name;
            return at(&place, format!("'{name}' does not lead to where the queue of '{queue}' is"));
        }
    }
    Ok(())
}

/// Most frames on average of a run.
const MOST_OVERRUN: f64 = 1e9;

/// What management of queues does not go together with.
fn check_managed(rule: &QueueRule, spec: &Spec, topology: &Topology) -> Checked {
    let elsewhere = [
        (matches!(spec.run.engine, Engine::Slotted { .. }), "the slotted engine has drop-tail queues only"),
        (spec.run.engine == Engine::EventTotals, "without flows that are counted queues are drop-tail"),
    ];
    if let Some((_, message)) = elsewhere.iter().find(|row| row.0) {
        return Err(SpecError::new("/discipline", *message));
    }
    let control = &spec.control;
    let of_bcn = control.bcn.iter().flat_map(|bcn| &bcn.congestion_point.ports);
    let of_qcn = control.qcn.iter().flat_map(|qcn| &qcn.congestion_point.ports);
    let points: Vec<u32> = of_bcn.chain(of_qcn).copied().collect();
    let limited = control.limited_hosts();
    for (j, &port) in rule.ports.iter().enumerate() {
        let found = &topology.ports[port as usize];
        let is_held = control.pause.iter().any(|pause| pause.nodes.contains(&found.to))
            || spec.buffers.iter().any(|buffer| buffer.flow_control.is_some() && buffer.nodes.contains(&found.to));
        let message = if points.contains(&port) {
            "a congestion point has a drop-tail queue"
        } else if !spec.switching.is_plain() && topology.is_host(found.from) {
            "beside shared memories, adapters and slow outputs a host keeps its frames in queues of its own"
        } else if limited.contains(&found.from) {
            "a host with rate limiters keeps its frames in queues of its own"
        } else if is_held && topology.is_host(found.from) {
            "a host that can be paused keeps its frames in queues of its own"
        } else {
            continue;
        };
        return Err(SpecError::new(format!("/ports/{j}"), format!("{message} (got '{}')", found.name)));
    }
    Ok(())
}
