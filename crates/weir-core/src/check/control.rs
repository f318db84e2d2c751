//! Legality of congestion management.

use std::collections::BTreeSet;

use super::{MAX_DURATION, check_frame, check_host, check_port};
use crate::error::{Checked, Part, SpecError, each, refuse};
use crate::network::{PortSpec, Topology};
use crate::spec::control::{
    Bcn, BcnCongestionPoint, BcnReactionPoint, Control, Dcqcn, Limiter, Notification, NotificationLane, Pause, Qcn,
    Recovery, Response, Sampling, Stop,
};
use crate::units::{Bytes, Rate, Span};

pub(super) fn check_control(control: &Control, topology: &Topology) -> Checked {
    let schemes = [("bcn", control.bcn.is_some()), ("qcn", control.qcn.is_some()), ("dcqcn", control.dcqcn.is_some())];
    let chosen: Vec<&str> = schemes.iter().filter(|scheme| scheme.1).map(|scheme| scheme.0).collect();
    if let [first, second, ..] = chosen[..] {
        let message = format!("a flow obeys one scheme: {first} is chosen, too");
        return Err(SpecError::new(format!("/{second}"), message));
    }
    control.bcn.iter().try_for_each(|bcn| check_bcn(bcn, topology)).under("/bcn")?;
    control.qcn.iter().try_for_each(|qcn| check_qcn(qcn, topology)).under("/qcn")?;
    control.dcqcn.iter().try_for_each(|dcqcn| check_dcqcn(dcqcn, topology)).under("/dcqcn")?;
    let mut listed = BTreeSet::new();
    each(&control.pause, "/pause", |pause| check_pause(pause, topology, &mut listed))?;
    let mut listed = BTreeSet::new();
    each(&control.responses, "/responses", |response| check_response(response, topology, &mut listed))
}

fn check_bcn(bcn: &Bcn, topology: &Topology) -> Checked {
    check_bcn_point(&bcn.congestion_point, topology).under("/congestion_point")?;
    check_bcn_reaction(&bcn.reaction_point, topology).under("/reaction_point")
}

fn check_bcn_point(point: &BcnCongestionPoint, topology: &Topology) -> Checked {
    check_ports(&point.ports, topology)?;
    some_data("q_eq_bytes", point.q_eq_bytes)?;
    some_data("unit_bytes", point.unit_bytes)?;
    number("w", point.w, 0.0)?;
    some_data("sample_every_bytes", point.sample_every_bytes)?;
    check_sampling(point.sampling)?;
    check_notification(&point.notification)
}

fn check_bcn_reaction(point: &BcnReactionPoint, topology: &Topology) -> Checked {
    check_hosts(&point.hosts, topology)?;
    number("gi", point.gi, 0.0)?;
    number("gd", point.gd, 0.0)?;
    some_rate("min_rate_bps", point.min_rate_bps)?;
    for (name, rate) in [("initial_rate_bps", point.initial_rate_bps), ("removal_rate_bps", point.removal_rate_bps)] {
        if rate.is_some_and(|rate| rate < point.min_rate_bps) {
            let message = format!("this rate is at least the least rate, {} (got {})", point.min_rate_bps, shown(rate));
            return Err(SpecError::new(format!("/{name}"), message));
        }
    }
    if let Some(drift) = point.drift {
        some_time("drift/every_ps", drift.every_ps)?;
    }
    check_stop(&point.stop).under("/stop")?;
    check_limiter(&point.limiter)
}

fn check_stop(stop: &Stop) -> Checked {
    bounded_time("t_max_ps", stop.t_max_ps)?;
    some_rate("r_min_bps", stop.r_min_bps)?;
    number("t_max_factor", stop.t_max_factor, 1.0)?;
    share("r_min_factor", stop.r_min_factor)?;
    refuse!(stop.r_min_factor == 0.0, "/r_min_factor", "a factor above 0 and at most 1 (got 0)");
    Ok(())
}

fn check_qcn(qcn: &Qcn, topology: &Topology) -> Checked {
    let point = &qcn.congestion_point;
    let at = |error: SpecError| error.under("/congestion_point");
    check_ports(&point.ports, topology).map_err(at)?;
    some_data("q_eq_bytes", point.q_eq_bytes).map_err(at)?;
    number("w", point.w, 0.0).map_err(at)?;
    some_data("sample_every_bytes", point.sample_every_bytes).map_err(at)?;
    check_sampling(point.sampling).map_err(at)?;
    check_notification(&point.notification).map_err(at)?;
    let point = &qcn.reaction_point;
    let at = |error: SpecError| error.under("/reaction_point");
    check_hosts(&point.hosts, topology).map_err(at)?;
    number("gd", point.gd, 0.0).map_err(at)?;
    share("min_decrease_factor", point.min_decrease_factor).map_err(at)?;
    check_recovery(&point.recovery).map_err(at)?;
    some_rate("min_rate_bps", point.min_rate_bps).map_err(at)?;
    check_limiter(&point.limiter).map_err(at)
}

fn check_dcqcn(dcqcn: &Dcqcn, topology: &Topology) -> Checked {
    bounded_time("notify_every_ps", dcqcn.notify_every_ps)?;
    check_notification(&dcqcn.notification)?;
    if dcqcn.notification.lane == NotificationLane::Beside {
        let message = "notifications of receivers are frames: write 'control' or 'data' (got 'beside')";
        return Err(SpecError::new("/notification/lane", message));
    }
    let point = &dcqcn.reaction_point;
    let at = |error: SpecError| error.under("/reaction_point");
    check_hosts(&point.hosts, topology).map_err(at)?;
    share("g", point.g).map_err(at)?;
    some_time("alpha_timer_ps", point.alpha_timer_ps).map_err(at)?;
    point.cut_timer_ps.map_or(Ok(()), |timer| some_time("cut_timer_ps", timer)).map_err(at)?;
    check_recovery(&point.recovery).map_err(at)?;
    some_rate("min_rate_bps", point.min_rate_bps).map_err(at)?;
    check_limiter(&point.limiter).map_err(at)
}

fn check_recovery(recovery: &Recovery) -> Checked {
    let at = |error: SpecError| error.under("/recovery");
    recovery.byte_counter_bytes.map_or(Ok(()), |counter| some_data("byte_counter_bytes", counter)).map_err(at)?;
    some_time("timer_ps", recovery.timer_ps).map_err(at)?;
    share("jitter", recovery.jitter).map_err(at)?;
    if let Some(above) = recovery.target_cut_above {
        number("target_cut_above", above, 1.0).map_err(at)?;
    }
    number("target_cut", recovery.target_cut, 1.0).map_err(at)
}

fn check_limiter(limiter: &Limiter) -> Checked {
    share("limiter/pacing_jitter", limiter.pacing_jitter)?;
    if let Some(most) = limiter.most_credit {
        number("limiter/most_credit", most, 1.0)?;
    }
    let most = limiter.most_credit.unwrap_or(1.0);
    if let Some(initial) = limiter.initial_credit.filter(|initial| !(0.0..=most).contains(initial)) {
        let message =
            format!("0 to {most} frames: a limiter does not start with more than it may save (got {initial})");
        return Err(SpecError::new("/limiter/initial_credit", message));
    }
    Ok(())
}

fn check_sampling(sampling: Sampling) -> Checked {
    match sampling {
        Sampling::Uniform { jitter } => share("sampling/jitter", jitter),
        Sampling::Exponential | Sampling::PerFrame => Ok(()),
    }
}

fn check_notification(notification: &Notification) -> Checked {
    let at = |error: SpecError| error.under("/notification");
    check_frame("frame_bytes", notification.frame_bytes).map_err(at)?;
    bounded_time("delay_ps", notification.delay_ps).map_err(at)
}

fn check_pause(pause: &Pause, topology: &Topology, listed: &mut BTreeSet<u32>) -> Checked {
    each(&pause.nodes, "/nodes", |&node| {
        let name = check_node(node, topology, listed)?;
        refuse!(topology.is_host(node), "", "only switches send PAUSE: '{name}' is a host");
        Ok(())
    })?;
    below_xoff(pause.xon_bytes, pause.xoff_bytes)?;
    check_frame("frame_bytes", pause.frame_bytes)?;
    bounded_time("delay_ps", pause.delay_ps)?;
    refuse!(pause.quanta == Some(0), "/quanta", "a pause is at least 1 quantum long (got 0)");
    pause.refresh_ps.map_or(Ok(()), |every| some_time("refresh_ps", every))
}

fn check_response(response: &Response, topology: &Topology, listed: &mut BTreeSet<u32>) -> Checked {
    each(&response.nodes, "/nodes", |&node| check_node(node, topology, listed))?;
    bounded_time("pause_ps", response.pause_ps)?;
    bounded_time("notification_ps", response.notification_ps)
}

pub(super) fn below_xoff(xon: Bytes, xoff: Bytes) -> Checked {
    refuse!(xon > xoff, "/xon_bytes", "XON comes below XOFF, {xoff} (got {xon})");
    Ok(())
}

/// The name of a node that exists and is not in `listed`, which it then is.
fn check_node<'a>(node: u32, topology: &'a Topology, listed: &mut BTreeSet<u32>) -> Checked<&'a str> {
    let name = &super::check_node(node, topology)?.name;
    refuse!(!listed.insert(node), "", "'{name}' is named twice");
    Ok(name)
}

fn check_ports(ports: &[u32], topology: &Topology) -> Checked {
    let mut listed = BTreeSet::new();
    each(ports, "/ports", |&port| {
        let PortSpec { name, from, .. } = check_port(port, topology)?;
        refuse!(topology.is_host(*from), "", "only queues of switches measure: '{name}' is a host's");
        refuse!(!listed.insert(port), "", "port '{name}' is named twice");
        Ok(())
    })
}

fn check_hosts(hosts: &[u32], topology: &Topology) -> Checked {
    check_listed_hosts(hosts, topology, &mut BTreeSet::new())
}

/// Hosts of one of several lists, which name each host once.
pub(super) fn check_listed_hosts(hosts: &[u32], topology: &Topology, listed: &mut BTreeSet<u32>) -> Checked {
    each(hosts, "/hosts", |&host| {
        let name = &check_host(host, topology)?.name;
        refuse!(!listed.insert(host), "", "host '{name}' is named twice");
        Ok(())
    })
}

fn some_data(name: &str, size: Bytes) -> Checked {
    refuse!(size == Bytes::ZERO, format!("/{name}"), "more than 0 B (got 0)");
    Ok(())
}

fn some_rate(name: &str, rate: Rate) -> Checked {
    refuse!(rate == Rate::from_bps(0), format!("/{name}"), "more than 0 bit/s (got 0)");
    Ok(())
}

pub(super) fn some_time(name: &str, span: Span) -> Checked {
    refuse!(span == Span::ZERO, format!("/{name}"), "longer than 0 s (got 0)");
    bounded_time(name, span)
}

pub(super) fn bounded_time(name: &str, span: Span) -> Checked {
    if span <= MAX_DURATION {
        return Ok(());
    }
    Err(SpecError::new(format!("/{name}"), format!("at most {MAX_DURATION} (got {span})")))
}

fn number(name: &str, value: f64, least: f64) -> Checked {
    if value.is_finite() && value >= least {
        return Ok(());
    }
    Err(SpecError::new(format!("/{name}"), format!("a number, at least {least} (got {value})")))
}

fn share(name: &str, value: f64) -> Checked {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(SpecError::new(format!("/{name}"), format!("a number from 0 to 1 (got {value})")))
}

fn shown(rate: Option<Rate>) -> String {
    rate.map_or_else(|| "none".into(), |rate| rate.to_string())
}
