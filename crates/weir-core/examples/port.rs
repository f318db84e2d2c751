//! A port under Poisson traffic: its mean wait compared with that of an M/D/1 queue.
//!
//!     cargo run --release -p weir-core --example port
//!
//! Source of the formula: Kleinrock 1975, equation 5.63.

use weir_core::queue::{Lane, Limit, Offer, Port};
use weir_core::rng::Seed;
use weir_core::units::{Bytes, Rate, Time};

fn main() {
    let (rate, frame, load) = (Rate::from_gbit_per_s(1), Bytes::new(1250), 0.8);
    let service_ps = 10_000_000.0; // 1250 B at 1 Gbit/s
    let mut port: Port<Time> = Port::new(rate, Bytes::ZERO, Limit::UNLIMITED);
    let mut chance = Seed::new(1).stream("arrivals");
    let (mut at, mut waited_ps, frames) = (0.0_f64, 0.0, 200_000);
    for _ in 0..frames {
        at += chance.exponential() * service_ps / load;
        let now = Time::from_ps(at as u64);
        while port.due() <= now {
            let due = port.due();
            if let Some(sent) = port.wake(due) {
                waited_ps += (due - sent.handle).ps() as f64;
            }
        }
        assert!(!matches!(port.offer(now, now, frame, Lane::Data), Offer::Dropped));
    }
    println!("mean wait: {:.2} us", waited_ps / f64::from(frames) / 1e6);
    println!("M/D/1:     {:.2} us", load / (2.0 * (1.0 - load)) * service_ps / 1e6);
}
