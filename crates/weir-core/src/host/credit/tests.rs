use super::*;
use crate::ethernet::bcn;
use crate::host::clock::{Picoseconds, Slots};
use crate::rng::Seed;
use crate::spec::control::{BackOff, BcnReactionPoint, Limiter as Spec, Meanwhile, Restart, Stop, StopReset};
use crate::units::Span;

const SLOT: Span = Span::from_ps(1_200_000);
const RATE: Rate = Rate::from_gbit_per_s(10);

/// When frames to one place leave in the first slots, each of which takes one, if feedback comes in every hundredth.
fn slots_sent<C: Clock>(clock: C, tx: u64, at: impl Fn(u32) -> C::Tick) -> Vec<u32> {
    let rules = Rules::Bcn(bcn::Rules::new(&reaction_point(), RATE));
    let mut limiters = Limiters::new(Manner { clock, rules, savings: Savings::new(None, RATE), jitter: 0.0 }, 1);
    let (mut chance, mut sent, mut is_ready) = (Seed::new(3).stream("feedback"), Vec::new(), true);
    for slot in 0..20_000 {
        let now = at(slot);
        if slot % 100 == 0 {
            let feedback = Feedback::Bcn(bcn::Feedback::Change(20.0 * chance.open_unit() - 11.0));
            let streams = || (Seed::new(1).stream("rate"), Seed::new(1).stream("cost"));
            if limiters.on_feedback(now, 0, 7, feedback, streams) && !limiters.is_gated(0) {
                is_ready = limiters.admit(now, 0, tx);
            }
        }
        limiters.open(now, |_| is_ready = true);
        if is_ready {
            sent.push(slot);
            limiters.on_sent(now, 0, tx, Bytes::new(1500));
            is_ready = limiters.admit(now, 0, tx);
        }
    }
    sent
}

fn reaction_point() -> BcnReactionPoint {
    BcnReactionPoint {
        hosts: vec![],
        gi: 0.5,
        gd: 1.0 / 128.0,
        ru_bps: Rate::from_bps(8_000_000),
        min_rate_bps: Rate::from_bps(10_000_000),
        initial_rate_bps: None,
        removal_rate_bps: None,
        drift: None,
        stop: Stop {
            t_max_ps: SLOT * 10,
            t_max_factor: 1.0,
            r_min_bps: Rate::from_bps(100_000_000),
            r_min_factor: 1.0,
            restart: Restart::RMin,
            back_off: BackOff::After,
            meanwhile: Meanwhile::Ignore,
            reset: StopReset::Never,
        },
        limiter: Spec::default(),
    }
}

#[test]
fn limiters_send_in_the_same_slots_whether_time_goes_by_in_slots_or_in_picoseconds() {
    let slots = slots_sent(Slots(SLOT), 1, |slot| slot);
    let ps = slots_sent(Picoseconds, SLOT.ps(), |slot| Time::ZERO + SLOT * u64::from(slot));
    assert_eq!(slots, ps);
    assert!((2_000..18_000).contains(&slots.len()), "the limiter limits, and not always: {}", slots.len());
}
