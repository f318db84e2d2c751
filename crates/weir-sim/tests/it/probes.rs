//! Rows at the very edges of intervals, reckoned by hand: a frame of 1500 B takes 1.2 us, a link 0.5 us.

use weir_core::spec::{Limit, Source, TrafficProbe};
use weir_core::units::{Span, Time};
use weir_sim::{Delivery, PortInterval, Totals};

use crate::scenarios::{constant, drop_tail, one_way, probe, run, spec};

const NS: u64 = 1_000;

fn row(t_ns: u64, frames: u64, drops: u64, queue: (u64, u64), byte_ns: u64) -> PortInterval {
    PortInterval {
        t_ps: t_ns * NS,
        bytes: 1500 * frames,
        frames,
        drops,
        queue_bytes: queue.0,
        queue_max_bytes: queue.1,
        queue_byte_ps: u128::from(byte_ns * NS),
        paused_ps: 0,
    }
}

/// The intervals of the recorded port at `place`.
fn rows(totals: &Totals, place: usize) -> Vec<PortInterval> {
    let mut ports: Vec<u32> = totals.intervals.rows().map(|(port, _)| port).collect();
    ports.dedup();
    totals.intervals.rows().filter(|(port, _)| *port == ports[place]).map(|(_, row)| row).collect()
}

/// Two hosts send to a third over port 5 of the switch, at the given times in ns.
fn burst(times: &[&[u64]], duration_ns: u64) -> weir_core::spec::Spec {
    let sources = (0..).zip(times).flat_map(|(host, times)| {
        times.iter().map(move |&ns| Source {
            start_ps: Time::from_ps(ns * NS),
            stop_ps: Time::from_ps(ns * NS + 1),
            ..constant(host, 2, 1)
        })
    });
    spec(3, sources.collect(), Span::from_ns(duration_ns))
}

#[test]
fn a_transmission_that_begins_at_a_boundary_belongs_to_the_next_interval() {
    // Frames begin at 0 and 1200 at host 0; they reach the switch and begin there at 1700 and 2900.
    let mut spec = burst(&[&[0, 1200]], 4000);
    spec.record.ports = vec![probe(0, Span::from_ns(1200)), probe(5, Span::from_ns(1700))];
    let totals = run(&spec, 1);
    let begin = |t_ns, frames| row(t_ns, frames, 0, (0, 0), 0);
    assert_eq!(rows(&totals, 0), [begin(1200, 1), begin(2400, 1), begin(3600, 0), begin(4000, 0)]);
    assert_eq!(rows(&totals, 1), [begin(1700, 0), begin(3400, 2), begin(4000, 0)]);
}

#[test]
fn the_queue_at_a_boundary_is_what_waits_just_before_it() {
    // Two frames reach port 5 at 1700; the second waits until 2900.
    let mut spec = burst(&[&[0], &[0]], 3500);
    let mut rows = |every_ns| {
        spec.record.ports = vec![probe(5, Span::from_ns(every_ns))];
        rows(&run(&spec, 1), 0)
    };
    // A boundary at the arrival, and one at the start of the second transmission.
    assert_eq!(
        rows(1700),
        [row(1700, 0, 0, (0, 0), 0), row(3400, 2, 0, (0, 1500), 1500 * 1200), row(3500, 0, 0, (0, 0), 0),]
    );
    assert_eq!(rows(2900), [row(2900, 1, 0, (1500, 1500), 1500 * 1200), row(3500, 1, 0, (0, 1500), 0)]);
    // Boundaries within the waiting time cut the integral.
    assert_eq!(
        rows(1000),
        [
            row(1000, 0, 0, (0, 0), 0),
            row(2000, 1, 0, (1500, 1500), 1500 * 300),
            row(3000, 1, 0, (0, 1500), 1500 * 900),
            row(3500, 0, 0, (0, 0), 0),
        ]
    );
}

#[test]
fn intervals_in_which_nothing_happens_repeat_the_queue() {
    // One frame begins at 1700 and one waits until 2900; nothing touches the port in between.
    let mut spec = burst(&[&[0], &[0]], 3000);
    spec.record.ports = vec![probe(5, Span::from_ns(300))];
    let rows = rows(&run(&spec, 1), 0);
    let waiting: Vec<(u64, u64, u128)> =
        rows.iter().map(|row| (row.queue_bytes, row.queue_max_bytes, row.queue_byte_ps / 1000)).collect();
    assert_eq!(waiting[..5], [(0, 0, 0); 5]);
    assert_eq!(waiting[5], (1500, 1500, 1500 * 100));
    assert_eq!(waiting[6..9], [(1500, 1500, 1500 * 300); 3]);
    assert_eq!(waiting[9], (0, 1500, 1500 * 200));
    assert_eq!(rows.len(), 10);
}

#[test]
fn a_run_without_traffic_has_all_its_rows() {
    let mut spec = burst(&[], 1000);
    spec.record.ports = vec![probe(0, Span::from_ns(400))];
    spec.record.traffic = vec![TrafficProbe { traffic: 0, every_ps: Span::from_ns(5000) }];
    let totals = run(&spec, 1);
    assert_eq!(rows(&totals, 0), [400, 800, 1000].map(|t_ns| row(t_ns, 0, 0, (0, 0), 0)));
    assert_eq!(totals.deliveries, [(0, vec![Delivery { t_ps: 1000 * NS, frames: 0, bytes: 0 }])]);
    assert_eq!(totals.events, 0);
}

#[test]
fn drops_are_counted_in_the_interval_of_the_arrival() {
    // Three frames reach port 5 at 1700, of which one goes and one may wait; another one comes at 2900.
    let mut spec = burst(&[&[0, 1200], &[0], &[]], 5000);
    spec.network =
        weir_core::spec::Network::Star { hosts: 4, link: crate::scenarios::LINK, switch: crate::scenarios::SWITCH };
    spec.traffic[0].sources.push(Source { stop_ps: Time::from_ps(1), ..constant(3, 2, 1) });
    spec.queues = vec![drop_tail(vec![5], Limit::Frames(1))];
    spec.record.ports = vec![probe(5, Span::from_ns(1700))];
    let totals = run(&spec, 1);
    assert_eq!(
        rows(&totals, 0),
        [
            row(1700, 0, 0, (0, 0), 0),
            row(3400, 2, 1, (1500, 1500), 1500 * 1200 + 1500 * 500),
            row(5000, 1, 0, (0, 1500), 1500 * 700),
        ]
    );
}

#[test]
fn a_delivery_at_a_boundary_belongs_to_the_next_interval() {
    // Host 0's frames are delivered at 3400, 4600, ...
    let mut spec = one_way(1200, Span::from_ns(5800));
    spec.record.traffic = vec![TrafficProbe { traffic: 0, every_ps: Span::from_ns(1700) }];
    let totals = run(&spec, 1);
    let delivery = |t_ns, frames| Delivery { t_ps: t_ns * NS, frames, bytes: 1500 * frames };
    assert_eq!(totals.deliveries[0].1, [delivery(1700, 0), delivery(3400, 0), delivery(5100, 2), delivery(5800, 0)]);
    assert_eq!(totals.flows[0].delivered_frames, 2, "what happens at the end does not count");
}

#[test]
fn a_transmission_is_busy_only_up_to_the_end_of_the_run() {
    let totals = run(&one_way(1200, Span::from_ns(2000)), 1);
    assert_eq!((totals.ports[0].counters.frames, totals.ports[0].counters.busy_ps), (2, 2_000_000));
    assert_eq!((totals.ports[3].counters.frames, totals.ports[3].counters.busy_ps), (1, 300_000));
}

#[test]
fn a_backlog_at_a_host_is_accounted_without_being_kept() {
    // Frames every 400 ns, served in 1200 ns: of those at 0, 400, ..., 2800 three have begun when the run ends at 3000.
    let spec = one_way(400, Span::from_ns(3000));
    let totals = run(&spec, 1);
    let port = totals.ports[0].counters;
    assert_eq!((totals.flows[0].sent_frames, totals.flows[0].live_frames), (8, 8));
    assert_eq!(port.frames, 3);
    // Waiting times: 800 and 1600, and what is left to the end of those generated at 1200 ... 2800.
    assert_eq!(port.queue_wait_ps, u128::from((800 + 1600 + 1800 + 1400 + 1000 + 600 + 200) * NS));
    assert_eq!(port.queue_byte_ps, 1500 * port.queue_wait_ps);
    assert_eq!(port.queue_max_bytes, 5 * 1500);
}

#[test]
fn delays_are_distinguished_from_generation_to_delivery() {
    let mut spec = one_way(600, Span::from_us(10));
    spec.record.delays = true;
    let totals = run(&spec, 1);
    let flow = totals.flows[0];
    // The n-th frame waits n x 600 ns at the host; a frame alone takes 2 x 1700 ns; 6 are delivered before 10 us.
    assert_eq!(flow.delivered_frames, 6);
    assert_eq!(flow.delay_min, Some(Span::from_ns(3400)));
    assert_eq!(flow.delay_max, Some(Span::from_ns(3400 + 5 * 600)));
    assert_eq!(flow.delay_sum_ps, u128::from(Span::from_ns(6 * 3400 + 15 * 600).ps()));
    let bins: Vec<(u64, u64)> = totals.delays.iter().map(|&(_, low, high, _)| (low, high)).collect();
    assert!(bins.iter().all(|(low, high)| (high - low) * 32 <= *low));
    assert_eq!(totals.delays.iter().map(|bin| bin.3).sum::<u64>(), 6);
}
