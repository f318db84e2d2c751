//! What the slotted engine can do.

use super::{check_limiter, common_link, exclude, need_flows};
use crate::error::{Checked, SpecError, each, refuse};
use crate::network::Topology;
use crate::path::LossModel;
use crate::spec::{Departures, Engine, FrameSize, Source, Spec};
use crate::units::{Bytes, Span};

/// Most hosts of the slotted engine.
const MAX_SLOTTED_HOSTS: usize = 1 << 16;
/// Most sources of the slotted engine.
const MAX_SLOTTED_SOURCES: usize = 1 << 15;
/// Most slots of a run.
const MAX_SLOTS: u64 = 1 << 31;
/// Most slots from the end of a transmission until the frame can go on: what is on links is kept slot by slot.
const MAX_LAG_SLOTS: u64 = 1 << 20;

pub(super) fn check_slotted(spec: &Spec, topology: &Topology) -> Checked {
    let Some(link) = common_link(&spec.network) else {
        return Err(SpecError::new("/network", "the slotted engine takes stars and fat trees only"));
    };
    let Some((_, slot)) = spec.cell() else {
        return Err(unequal_frames(spec));
    };
    let hosts = (0..topology.nodes.len() as u32).filter(|&node| topology.is_host(node)).count();
    let most = MAX_SLOTTED_HOSTS;
    refuse!(hosts > most, "/network", "the slotted engine takes at most {most} hosts (got {hosts})");
    let sources: usize = spec.traffic.iter().map(|group| group.sources.len()).sum();
    let most = MAX_SLOTTED_SOURCES;
    refuse!(sources > most, "/traffic", "the slotted engine takes at most {most} sources (got {sources})");
    let mut neighbours = topology.ports.iter().zip(topology.ports.iter().skip(2)).step_by(2);
    let has_two_links = neighbours.any(|(a, b)| a.from == b.from && topology.is_host(a.from));
    refuse!(has_two_links, "/network/parents/0", "the slotted engine takes hosts with one link");
    let loses = link.loss != LossModel::None;
    refuse!(loses, "/network/link/loss", "the slotted engine has no loss on links");
    whole_slots(link.delay_ps.ps(), slot, "/network/link/delay_ps", "the delay of a link")?;
    let latency = topology.nodes.iter().map(|node| node.latency_ps).max().unwrap_or(Span::ZERO);
    whole_slots(latency.ps(), slot, "/network/switch/latency_ps", "the latency of a switch")?;
    if link.delay_ps.ps().saturating_add(latency.ps()) / slot.ps() > MAX_LAG_SLOTS {
        let (pointer, what) = match link.delay_ps < latency {
            true => ("/network/switch/latency_ps", "the latency of a switch"),
            false => ("/network/link/delay_ps", "the delay of a link"),
        };
        let got = link.delay_ps.max(latency);
        let message = format!(
            "{what} is too long for the slotted engine, which takes {MAX_LAG_SLOTS} slots of {slot} (got {got})"
        );
        return Err(SpecError::new(pointer, message));
    }
    let lasts = spec.run.duration_ps.ps();
    let is_too_long = lasts / slot.ps() > MAX_SLOTS;
    refuse!(is_too_long, "/run/duration_ps", "the slotted engine takes at most {MAX_SLOTS} slots of {slot}");
    whole_slots(lasts, slot, "/run/duration_ps", "the duration")?;
    each(&spec.traffic, "/traffic", |group| {
        each(&group.sources, "/sources", |source| check_slotted_source(source, slot))
    })?;
    each(&spec.switching.services, "/switching/services", |service| {
        whole_slots(service.from_ps.ps(), slot, "/from_ps", "a time")?;
        whole_slots(service.to_ps.ps(), slot, "/to_ps", "a time")
    })?;
    let whole_interval = |every: Span| whole_slots(every.ps(), slot, "/every_ps", "an interval");
    each(&spec.record.ports, "/record/ports", |probe| whole_interval(probe.every_ps))?;
    each(&spec.record.flows, "/record/flows", |probe| whole_interval(probe.every_ps))?;
    each(&spec.record.limiters, "/record/limiters", |probe| whole_interval(probe.every_ps))?;
    each(&spec.record.traffic, "/record/traffic", |probe| whole_interval(probe.every_ps))?;
    let parts = [
        (
            "/control/pause",
            !spec.control.pause.is_empty(),
            "has no PAUSE by single queues: use that of a shared memory",
        ),
        ("/control/qcn", spec.control.qcn.is_some(), "has no QCN"),
        ("/control/dcqcn", spec.control.dcqcn.is_some(), "has no DCQCN"),
        ("/queues", spec.queues.iter().any(|rule| rule.marks()), "marks no frames"),
        (
            "/switching/memories",
            spec.switching.memories.iter().any(|memory| memory.alpha.is_some()),
            "has memories without dynamic thresholds: leave 'alpha' out",
        ),
        ("/record/delays", spec.record.delays, "records no distribution of delays"),
        ("/record/captures", !spec.record.captures.is_empty(), "writes no captures"),
        ("/record/queue_levels", !spec.record.queue_levels.is_empty(), "records no levels of queues"),
    ];
    exclude(&parts, |what| format!("the slotted engine {what}"))?;
    let parts = [
        ("/record/limiters", !spec.record.limiters.is_empty(), "series of limiters need"),
        ("/record/flows", !spec.record.flows.is_empty(), "series of single flows need"),
    ];
    if spec.run.engine == (Engine::Slotted { flows: false }) {
        need_flows(&parts)?;
    }
    check_limiter(&spec.control)
}

/// Why a spec has no cell.
fn unequal_frames(spec: &Spec) -> SpecError {
    let mut first: Option<(Bytes, &str)> = None;
    for (i, group) in spec.traffic.iter().enumerate() {
        for (j, source) in group.sources.iter().enumerate() {
            let at = format!("/traffic/{i}/sources/{j}/frame_size");
            let name = group.name.as_str();
            let FrameSize::Fixed(size) = source.frame_size else {
                let message = format!("the slotted engine takes frames of one size: '{name}' draws them from a mix");
                return SpecError::new(at, message);
            };
            match first {
                Some((other, earlier)) if other != size => {
                    let message = format!(
                        "the slotted engine takes frames of one size: write {other}, as '{earlier}' has ('{name}' has \
                         {size})"
                    );
                    return SpecError::new(at, message);
                }
                _ => first = Some((size, name)),
            }
        }
    }
    SpecError::new("/traffic", "the slotted engine needs traffic with sources of frames, all of one size")
}

fn check_slotted_source(source: &Source, slot: Span) -> Checked {
    if source.start_ps.ps() <= MAX_SLOTS * slot.ps() {
        whole_slots(source.start_ps.ps(), slot, "/start_ps", "a time")?;
    }
    match source.departures {
        Departures::Bernoulli { slot_ps, .. } | Departures::Bursts { slot_ps, .. } if slot_ps == slot => Ok(()),
        Departures::Constant { gap_ps } if gap_ps % slot.ps() as f64 == 0.0 => Ok(()),
        Departures::Bernoulli { slot_ps, .. } | Departures::Bursts { slot_ps, .. } => Err(SpecError::new(
            "/departures/slot_ps",
            format!("the slot of the slotted engine is what a frame takes on a link, {slot} (got {slot_ps})"),
        )),
        Departures::Constant { gap_ps } => Err(SpecError::new(
            "/departures/gap_ps",
            format!(
                "constant gaps are whole numbers of slots of {slot} in the slotted engine: write a load of 50 %, 25 %, \
                 20 % or another n-th, or 'kind: bernoulli' (got gaps of {:.5} slots)",
                gap_ps / slot.ps() as f64
            ),
        )),
        Departures::Poisson { .. } | Departures::OnOff { .. } => Err(SpecError::new(
            "/departures",
            "the slotted engine takes sources with slots: write constant, bernoulli or bursts",
        )),
    }
}

fn whole_slots(ps: u64, slot: Span, pointer: &str, what: &str) -> Checked {
    let slots = ps / slot.ps();
    if ps.is_multiple_of(slot.ps()) {
        return Ok(());
    }
    let times = |slots: u64| Span::from_ps(slots.saturating_mul(slot.ps()));
    let below = if slots == 0 { String::new() } else { format!("{} or ", times(slots)) };
    let message = format!(
        "{what} is a whole number of slots of {slot} in the slotted engine: write {below}{} (got {})",
        times(slots + 1),
        Span::from_ps(ps)
    );
    Err(SpecError::new(pointer, message))
}
