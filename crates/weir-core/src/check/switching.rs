//! Legality of memories, adapters and slow outputs, and of what the slotted engine can compute.

mod slotted;

use std::collections::BTreeSet;

use self::slotted::check_slotted;
use super::control::{below_xoff, check_listed_hosts};
use super::{check_node, check_port};
use crate::error::{Checked, Part, SpecError, each, refuse};
use crate::network::Topology;
use crate::spec::control::{Control, Notification, NotificationLane};
use crate::spec::switching::{Egress, Memory, MemoryPause, Service};
use crate::spec::{Engine, FrameSize, Limit, LinkSpec, Network, Spec};
use crate::units::{Bytes, Span};

pub(super) fn check_switching(spec: &Spec, topology: &Topology) -> Checked {
    let switching = &spec.switching;
    let mut listed = BTreeSet::new();
    each(&switching.memories, "/switching/memories", |memory| check_memory(memory, topology, &mut listed))?;
    let mut listed = BTreeSet::new();
    each(&switching.adapters, "/switching/adapters", |adapter| {
        check_listed_hosts(&adapter.hosts, topology, &mut listed)
    })?;
    each(&switching.services, "/switching/services", |service| check_service(service, topology))?;
    let mut listed = BTreeSet::new();
    each(&switching.egress, "/switching/egress", |egress| check_egress(egress, topology, &mut listed))?;
    match spec.run.engine {
        Engine::Event if switching.is_plain() => check_paced(&spec.control),
        Engine::Event => check_beside(spec),
        Engine::EventTotals => check_beside(spec).and_then(|()| check_totals(spec)),
        Engine::Slotted { .. } => check_slotted(spec, topology),
    }
}

fn check_memory(memory: &Memory, topology: &Topology, listed: &mut BTreeSet<u32>) -> Checked {
    each(&memory.nodes, "/nodes", |&node| {
        let name = &check_node(node, topology)?.name;
        refuse!(topology.is_host(node), "", "only switches have a shared memory: '{name}' is a host");
        refuse!(!listed.insert(node), "", "'{name}' has two memories");
        Ok(())
    })?;
    refuse!(memory.bytes == Bytes::ZERO, "/bytes", "a memory of more than 0 B (got 0 B)");
    if let Some(alpha) = memory.alpha.filter(|alpha| !(*alpha > 0.0 && alpha.is_finite())) {
        return Err(SpecError::new("/alpha", format!("a number above 0 (got {alpha})")));
    }
    memory.pause.iter().try_for_each(|pause| check_pause(pause, memory.bytes)).under("/pause")
}

fn check_pause(pause: &MemoryPause, memory: Bytes) -> Checked {
    if pause.xoff_bytes >= memory {
        let message = format!("XOFF comes before the memory of {memory} is full (got {})", pause.xoff_bytes);
        return Err(SpecError::new("/xoff_bytes", message));
    }
    below_xoff(pause.xon_bytes, pause.xoff_bytes)?;
    match (pause.quanta, pause.refresh_ps) {
        (_, Some(refresh)) if refresh == Span::ZERO => {
            Err(SpecError::new("/refresh_ps", "PAUSE is repeated after more than 0 s"))
        }
        (Some(quanta), None) => {
            let message = format!("a pause of {quanta} quanta ends by itself: say when it is repeated");
            Err(SpecError::new("/refresh_ps", message))
        }
        _ => Ok(()),
    }
}

fn check_service(service: &Service, topology: &Topology) -> Checked {
    let port = check_port(service.port, topology).under("/port")?;
    if topology.is_host(port.from) || !topology.is_host(port.to) {
        let message = format!("a port that leads from a switch to a host (got '{}')", port.name);
        return Err(SpecError::new("/port", message));
    }
    if service.rate_bps.bps() == 0 || service.rate_bps > port.link.rate_bps {
        let (line, rate) = (port.link.rate_bps.bps(), service.rate_bps.bps());
        let message = format!("a rate above 0 and at most that of the line, {line} bit/s (got {rate} bit/s)");
        return Err(SpecError::new("/rate_bps", message));
    }
    if service.from_ps >= service.to_ps {
        let message = format!("it ends after its start (from {}, to {})", service.from_ps, service.to_ps);
        return Err(SpecError::new("/to_ps", message));
    }
    Ok(())
}

fn check_egress(egress: &Egress, topology: &Topology, listed: &mut BTreeSet<u32>) -> Checked {
    check_listed_hosts(&egress.hosts, topology, listed)?;
    below_xoff(egress.xon_bytes, egress.xoff_bytes)
}

/// The link that all links are like, where the network has one.
fn common_link(network: &Network) -> Option<&LinkSpec> {
    match network {
        Network::Star { link, .. } | Network::FatTree { link, .. } | Network::Xgft { link, .. } => Some(link),
        Network::Graph { .. } | Network::Dumbbell { .. } => None,
    }
}

impl Spec {
    /// The size of all frames and the slot of the slotted engine: the time that one takes on a link. None where
    /// frames or links differ, or where there are none.
    pub fn cell(&self) -> Option<(Bytes, Span)> {
        let link = common_link(&self.network)?;
        let mut sizes = self.traffic.iter().flat_map(|group| &group.sources).map(|source| match source.frame_size {
            FrameSize::Fixed(size) => Some(size),
            FrameSize::Mix(_) => None,
        });
        let first = sizes.next()??;
        sizes.all(|size| size == Some(first)).then(|| (first, (first + link.framing_bytes) / link.rate_bps))
    }
}

/// What needs flows that are counted.
fn check_totals(spec: &Spec) -> Checked {
    each(&spec.traffic, "/traffic", |traffic| {
        need_flows(&[
            ("/tcp", traffic.tcp.is_some(), "TCP needs"),
            ("/probers", traffic.probers.is_some(), "probes need"),
            ("/messages", traffic.messages.is_some(), "messages need"),
        ])
    })?;
    let notification = [
        ("bcn", spec.control.bcn.as_ref().map(|bcn| bcn.congestion_point.notification)),
        ("qcn", spec.control.qcn.as_ref().map(|qcn| qcn.congestion_point.notification)),
    ];
    let travels_among =
        |row: &&(&str, Option<Notification>)| row.1.is_some_and(|how| how.lane != NotificationLane::Beside);
    if let Some((scheme, _)) = notification.iter().find(travels_among) {
        let message = "without flows that are counted notifications travel 'beside' the frames";
        return Err(SpecError::new(format!("/control/{scheme}/congestion_point/notification/lane"), message));
    }
    need_flows(&[
        ("/control/dcqcn", spec.control.dcqcn.is_some(), "DCQCN needs"),
        ("/record/flows", !spec.record.flows.is_empty(), "series of single flows need"),
        ("/record/delays", spec.record.delays, "distributions of delays need"),
        ("/record/limiters", !spec.record.limiters.is_empty(), "series of limiters need"),
    ])
}

/// What the event engine has, but not beside shared memories, adapters and slow outputs.
fn check_beside(spec: &Spec) -> Checked {
    let message = "networks with shared memories, adapters or slow outputs have no PAUSE by single queues: use that of \
                   a shared memory";
    refuse!(!spec.control.pause.is_empty(), "/control/pause", "{message}");
    check_limiter(&spec.control)
}

/// Elsewhere limiters space frames by the time since the frame before.
fn check_paced(control: &Control) -> Checked {
    let Some(limiter) = control.limiter() else { return Ok(()) };
    let words = "limiters have credit with shared memories, adapters or slow outputs, and in the slotted engine: leave \
                 'credit' out";
    let parts = [
        ("/initial_credit", limiter.initial_credit.is_some(), words),
        ("/most_credit", limiter.most_credit.is_some(), words),
    ];
    exclude(&parts, str::to_owned).under(pointer_of_limiter(control))
}

fn pointer_of_limiter(control: &Control) -> &'static str {
    match control {
        Control { bcn: Some(_), .. } => "/control/bcn/reaction_point/limiter",
        Control { qcn: Some(_), .. } => "/control/qcn/reaction_point/limiter",
        _ => "/control/dcqcn/reaction_point/limiter",
    }
}

/// Behind shared memories, adapters and slow outputs what limiters hold waits in the queues of its host.
fn check_limiter(control: &Control) -> Checked {
    let Some(limiter) = control.limiter() else { return Ok(()) };
    let parts = [
        ("/queue", limiter.queue != Limit::Unlimited, "no limit of what waits for a limiter: leave 'queue' out"),
        ("/fifo_frames", limiter.fifo_frames > 0, "no frames that limiters pass on early: leave 'fifo' out"),
    ];
    let beside = "networks with shared memories, adapters or slow outputs, and the slotted engine, have";
    exclude(&parts, |what| format!("{beside} {what}")).under(pointer_of_limiter(control))
}

/// A part of a spec: its place, whether it is there, and words about it.
type Listed<'a> = (&'a str, bool, &'a str);

/// Refuses the first of the parts that is there.
fn exclude(parts: &[Listed<'_>], message: impl Fn(&str) -> String) -> Checked {
    match parts.iter().find(|part| part.1) {
        Some((pointer, _, words)) => Err(SpecError::new(pointer, message(words))),
        None => Ok(()),
    }
}

fn need_flows(parts: &[Listed<'_>]) -> Checked {
    exclude(parts, |what| format!("{what} flows that are counted"))
}
