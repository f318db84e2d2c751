//! Legality of queue disciplines.

use super::check_port;
use crate::error::SpecError;
use crate::network::Topology;
use crate::spec::{Discipline, Engine, Marking, QueueRule, Spec};

pub(super) fn check_queues(spec: &Spec, topology: &Topology) -> Result<(), SpecError> {
    for (i, rule) in spec.queues.iter().enumerate() {
        check_rule(rule, spec, topology).map_err(|error| error.under(format!("/queues/{i}")))?;
    }
    Ok(())
}

fn check_rule(rule: &QueueRule, spec: &Spec, topology: &Topology) -> Result<(), SpecError> {
    for (j, &port) in rule.ports.iter().enumerate() {
        check_port(port, topology).map_err(|error| error.under(format!("/ports/{j}")))?;
    }
    match &rule.discipline {
        Discipline::DropTail { marking: None, .. } => Ok(()),
        Discipline::DropTail { marking: Some(marking), .. } => check_marking(marking, rule, topology),
        Discipline::Managed { aqm, .. } => {
            aqm.check().map_err(|error| error.under("/discipline/aqm"))?;
            check_managed(rule, spec, topology)
        }
    }
}

fn check_marking(marking: &Marking, rule: &QueueRule, topology: &Topology) -> Result<(), SpecError> {
    for (i, &port) in rule.ports.iter().enumerate() {
        let port = &topology.ports[port as usize];
        if topology.is_host(port.from) {
            let message = format!("only queues of switches mark: '{}' is a host's", port.name);
            return Err(SpecError::new(format!("/ports/{i}"), message));
        }
    }
    marking.check().map_err(|error| error.under("/discipline/marking"))
}

/// What management of queues does not go together with.
fn check_managed(rule: &QueueRule, spec: &Spec, topology: &Topology) -> Result<(), SpecError> {
    let elsewhere = [
        (matches!(spec.run.engine, Engine::Slotted { .. }), "the slotted engine has drop-tail queues only"),
        (spec.run.engine == Engine::EventTotals, "without flows that are counted queues are drop-tail"),
        (!spec.switching.is_plain(), "beside shared memories, adapters and slow outputs queues are drop-tail"),
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
        let is_held = control.pause.iter().any(|pause| pause.nodes.contains(&found.to));
        let message = if points.contains(&port) {
            "a congestion point has a drop-tail queue"
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
