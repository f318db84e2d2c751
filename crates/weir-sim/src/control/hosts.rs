//! The hosts that have queues of their own, with their limiters.

use std::collections::BTreeMap;

use weir_core::ethernet::reaction::Rules;
use weir_core::host::{Limiters, Limiting, Manner, Paced, Picoseconds};
use weir_core::queue::Limit;
use weir_core::rng::Seed;
use weir_core::units::{Rate, Time};

use super::host::{Bounds, Host, Outlet};
use super::plan::{ControlPlan, Law};
use super::{Beyond, Control};
use crate::boundaries::Boundaries;
use crate::feed::Feed;
use crate::limiting::HostSeries;
use crate::plan::Plan;

impl Control {
    /// Puts together the hosts with queues of their own.
    pub(super) fn add_hosts(&mut self, plan: &Plan, shared: &ControlPlan, seed: Seed, end: Time) {
        let (law, topology) = (plan.law(), &plan.topology);
        let has_host = |port: u32| plan.is_adapted(port);
        let mut keys: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        // A flow of messages leaves every host, and has a queue at each.
        let (open, fixed): (Vec<u32>, Vec<u32>) = (0..plan.pairs()).partition(|&pair| plan.is_open(pair));
        for port in (0..topology.ports.len() as u32).filter(|&port| has_host(port) && !open.is_empty()) {
            keys.entry(port).or_default().extend(&open);
        }
        for pair in fixed.into_iter().filter(|&pair| has_host(plan.first_port(pair))) {
            keys.entry(plan.first_port(pair)).or_default().push(plan.key(pair));
        }
        if law == Law::Destinations {
            let of_hosts = (0..).zip(&topology.ports).filter(|(_, port)| topology.is_host(port.from));
            of_hosts.for_each(|(port, _)| _ = keys.entry(port).or_default());
        }
        let mut has_one = vec![law == Law::Destinations; topology.nodes.len()];
        let adapters = plan.spec.switching.adapters.iter();
        adapters.flat_map(|adapter| &adapter.hosts).for_each(|&host| has_one[host as usize] = false);
        let mut feeds: BTreeMap<u32, Feed> = plan.feeds(seed, has_host).collect();
        for (port, mut keys) in keys {
            keys.sort_unstable();
            keys.dedup();
            let spec = &topology.ports[port as usize];
            let limiter = plan.spec.control.limiter();
            let bounds = Bounds {
                open: plan.limits[port as usize],
                limited: limiter.map_or(Limit::UNLIMITED, |limiter| limiter.queue.into()),
                fifo: limiter.filter(|_| law == Law::Flows).map_or(0, |limiter| limiter.fifo_frames as usize),
            };
            let link = &spec.link;
            let outlet = Outlet {
                host: spec.from,
                rate: link.rate_bps,
                framing: link.framing_bytes,
                lag: plan.lag(port as usize),
            };
            let limiting = match (shared.limited[spec.from as usize], law) {
                (false, _) => Limiting::Off,
                (true, Law::Flows) => paced(plan, shared, &keys, link.rate_bps, seed),
                (true, Law::Destinations) => Manner::new(Picoseconds, &plan.spec.control, link.rate_bps)
                    .map_or(Limiting::Off, |how| Limiting::Credit(Box::new(Limiters::new(how, keys.len())))),
            };
            let is_limited = !matches!(limiting, Limiting::Off);
            let keys = (keys, has_one[spec.from as usize]);
            let classes = keys.0.iter().map(|&key| if law == Law::Flows { plan.flows[key as usize].class } else { 0 });
            let classes = if shared.asking[topology.ports[port as usize].to as usize].is_some() {
                classes.collect()
            } else {
                Vec::new()
            };
            let mut host = Host::new(law, outlet, keys, feeds.remove(&port), (limiting, bounds), seed);
            host.classes = classes;
            let probe = plan.spec.record.limiters.iter().find(|probe| probe.host == spec.from && is_limited);
            if let Some(probe) = probe {
                host.series = Some(Box::new(HostSeries::new(Boundaries::new(probe.every_ps, end), host.places())));
            }
            self.extras[port as usize].beyond = Beyond::Host(Box::new(host));
        }
    }
}

/// Limiters for these flows.
fn paced(plan: &Plan, shared: &ControlPlan, flows: &[u32], rate: Rate, seed: Seed) -> Limiting {
    let jitter = plan.spec.control.limiter().map_or(0.0, |limiter| limiter.pacing_jitter);
    let chance = flows.iter().map(|&flow| {
        let name = shared.names.get(flow as usize).map_or("", |name| name);
        let stream = |what: &str| seed.stream(&format!("control/{what}/{name}"));
        (stream("limiter"), stream("pacing"))
    });
    let rules = Rules::new(&plan.spec.control, rate);
    rules.map_or(Limiting::Off, |rules| Limiting::Paced(Paced::new(rules, jitter, chance)))
}
