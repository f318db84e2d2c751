//! HyStart++ over a line with a queue, beside slow start that ends with losses.

use weir_core::cc::{self, SlowStart};
use weir_core::tcp::{Config, SenderCounters};
use weir_core::units::{Bytes, Span, Time};

use crate::tcp_line::{FRAME, Network, RTT, config, goodput_share, line, mbit, nothing};

/// What a connection has lost and carried after so many round trips; the line is one of 100 Mbit/s, with a queue of `bdps`
/// times what it holds.
fn after(control: cc::Config, bdps: f64, round_trips: u64) -> (SenderCounters, f64) {
    let config = Config { receive_buffer_bytes: Bytes::new(1 << 26), ..config(control) };
    let bdp = (mbit(100) * RTT).count() as f64;
    let mut network = Network::new(&[config], &line(mbit(100), (bdps * bdp) as u64), nothing);
    let time = Span::from_ps(RTT.ps() * round_trips);
    network.bulk(&[Time::ZERO], Time::ZERO + time);
    (network.ends[0].0.counters(), goodput_share(network.delivered()[0], mbit(100), time))
}

fn cubic(slow_start: SlowStart) -> cc::Config {
    cc::Config::Cubic(cc::CubicConfig { slow_start, ..cc::CubicConfig::default() })
}

#[test]
fn slow_start_that_looks_at_round_trip_times_loses_less_where_queues_hold_much() {
    let of: [fn(SlowStart) -> cc::Config; 2] = [cubic, |slow_start| cc::Config::Reno(cc::RenoConfig { slow_start })];
    for control in of {
        for bdps in [2.0, 4.0] {
            let (lost, slow) = after(control(SlowStart::Standard), bdps, 50);
            let (kept, fast) = after(control(SlowStart::HyStart), bdps, 50);
            // A window that doubles ends by losing as much as pipe and queue hold; one that grows by a quarter, a quarter
            // of that at most.
            let full = ((1.0 + bdps) * (mbit(100) * RTT).count() as f64 / FRAME as f64) as u64;
            assert!(lost.retransmits > full / 2, "{bdps}: {lost:?}");
            assert!(kept.retransmits < full * 11 / 40, "{bdps}: {kept:?}");
            assert!(fast > slow - 0.02, "{bdps}: {fast} beside {slow}");
        }
    }
}

#[test]
fn where_losses_come_before_delays_it_is_slow_start_as_ever() {
    let (lost, slow) = after(cubic(SlowStart::Standard), 0.05, 50);
    let (also, fast) = after(cubic(SlowStart::HyStart), 0.05, 50);
    assert_eq!((lost.retransmits, lost.recoveries), (also.retransmits, also.recoveries));
    assert!((fast / slow - 1.0).abs() < 1e-9, "{fast} beside {slow}");
}
