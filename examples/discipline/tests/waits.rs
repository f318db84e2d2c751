//! The management of this crate at a port, and in a network.

use weir_core::queue::{Custom, Label, Lane, Limit, Port};
use weir_core::rng::Seed;
use weir_core::spec::aqm::Aqm;
use weir_core::units::{Bytes, Rate, Time};
use weir_example_discipline::{incast, parts};
use weir_sim::{DropCause, Parts, Plan, Progress, simulate};

fn deadline(most_us: f64) -> Aqm {
    Aqm::Custom(Custom::new("deadline", &[("most_us", most_us)]))
}

/// Frames come at random at `load`, with sizes of exponential distribution; those whose wait would exceed T are lost. What is ahead of a frame
/// is the work of those that are served, with the density l P0 exp(-(m - l) x) up to T and l P0 exp(-(m - l) T - m (x - T)) beyond, by
/// the balance of what passes the level x upward and downward. So the share above T is (1 - r) r e / (1 - r^2 e) with e = exp(-(m - l) T).
#[test]
fn the_share_that_waits_too_long_is_that_of_queues_with_impatient_customers() {
    let (load, mean_us, most_us) = (0.9_f64, 1600.0, 4000.0);
    let spread = (-(1.0 - load) / mean_us * most_us).exp();
    let law = (1.0 - load) * load * spread / (1.0 - load * load * spread);
    let seed = Seed::new(7);
    let mut chance = seed.stream("arrivals");
    let shares: Vec<f64> = (0..20)
        .map(|batch| {
            let chance_of_port = seed.stream(&format!("queue-{batch}"));
            let port = Port::new(Rate::from_bps(10_000_000), Bytes::ZERO, Limit::UNLIMITED);
            let mut port: Port<u32> = port.managed(&deadline(most_us), chance_of_port, &parts().managements);
            let (mut at, mut lost, frames) = (0.0, 0, 20_000);
            for frame in 0..frames {
                at += chance.exponential() * mean_us / load;
                // 10 Mbit/s: 0.8 us a byte.
                let size = Bytes::new((chance.exponential() * mean_us / 0.8).round().max(1.0) as u64);
                let now = Time::from_ps((at * 1e6) as u64);
                while port.due() <= now {
                    port.wake(port.due());
                }
                port.offer_labeled(now, frame, size, Lane::Data, Label::default());
                while port.take_discarded().is_some() {
                    lost += 1;
                }
            }
            f64::from(lost) / f64::from(frames)
        })
        .collect();
    let count = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / count;
    let variance = shares.iter().map(|share| (share - mean) * (share - mean)).sum::<f64>() / (count - 1.0);
    let error = (variance / count).sqrt();
    assert!((mean - law).abs() < 4.0 * error && error < 0.02 * law, "{mean} +- {error}, {law}");
}

#[test]
fn in_a_network_it_drops_early_and_every_frame_is_counted() {
    let plan = Plan::with_parts(incast(deadline(20.0)), parts()).expect("a legal spec");
    let run = &simulate(&plan, &[1], 1, &Progress::new()).expect("a run")[0];
    let early: u64 =
        run.drops.iter().filter(|drops| drops.cause == DropCause::QueueEarly).map(|drops| drops.frames).sum();
    let dropped: u64 = run.flows.iter().map(|flow| flow.dropped_frames).sum();
    assert!(early > 70_000 && early == dropped, "{early} of {dropped}");
    for flow in &run.flows {
        assert_eq!(flow.sent_frames, flow.delivered_frames + flow.dropped_frames + flow.live_frames);
    }
}

#[test]
fn what_nobody_knows_is_refused_with_its_place() {
    let refused = |name: &str, settings: &[(&str, f64)], parts| {
        let aqm = Aqm::Custom(Custom::new(name, settings));
        let fault = Plan::with_parts(incast(aqm), parts).expect_err("it is unknown");
        (fault.pointer, fault.message)
    };
    let at = "/queues/0/discipline/aqm";
    let (pointer, message) = refused("dead-line", &[], parts());
    assert_eq!((pointer, message.contains("deadline (got dead-line)")), (format!("{at}/name"), true), "{message}");
    let (pointer, message) = refused("deadline", &[("most", 1.0)], parts());
    assert_eq!((pointer, message.contains("(got 'most')")), (format!("{at}/settings/most"), true), "{message}");
    assert_eq!(refused("deadline", &[("most_us", -1.0)], parts()).0, format!("{at}/settings/most_us"));
    assert_eq!(refused("deadline", &[], parts()).0, format!("{at}/settings"));
    assert_eq!(refused("deadline", &[("most_us", 1.0)], Parts::default()).0, format!("{at}/name"));
}
