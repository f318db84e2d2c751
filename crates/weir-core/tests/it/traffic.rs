use proptest::prelude::*;
use weir_core::rng::{Seed, Stream};
use weir_core::spec::{Departures, Destination, FrameSize, Source};
use weir_core::traffic::{Emissions, Geometric};
use weir_core::units::{Bytes, Span, Time};

use crate::specs::source;

fn with(departures: Departures) -> Source {
    Source { departures, ..source(0, 1) }
}

fn times(source: &Source, until: Span) -> Vec<u64> {
    let emissions = Emissions::new(source, Seed::new(3).stream("test"));
    emissions.map(|emission| emission.at.ps()).take_while(|&at| at < until.ps()).collect()
}

#[test]
fn constant_gaps_carry_their_fraction() {
    let source = Source { start_ps: Time::from_ps(7), ..with(Departures::Constant { gap_ps: 2.5 }) };
    assert_eq!(times(&source, Span::from_ps(21)), [7, 9, 12, 14, 17, 19]);
}

#[test]
fn a_source_is_silent_before_its_start_and_from_its_stop_on() {
    let departures = Departures::Constant { gap_ps: 10.0 };
    let source = Source { start_ps: Time::from_ps(100), stop_ps: Time::from_ps(130), ..with(departures) };
    let mut emissions = Emissions::new(&source, Seed::new(0).stream("x"));
    assert_eq!(emissions.peek(), Time::from_ps(100));
    assert_eq!(emissions.by_ref().map(|emission| emission.at.ps()).collect::<Vec<_>>(), [100, 110, 120]);
    assert_eq!(emissions.peek(), Time::NEVER);
    assert_eq!(emissions.next(), None);
}

#[test]
fn poisson_gaps_have_the_mean_and_variance_of_an_exponential() {
    let source = with(Departures::Poisson { mean_gap_ps: 1e6 });
    let times = times(&source, Span::from_ms(100));
    let n = times.len() as f64;
    // The count over a fixed time is Poisson: variance = mean = 1e5.
    assert!((n - 1e5).abs() < 4.0 * 1e5_f64.sqrt(), "{n} frames");
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
    // E[x^2] = 2, Var[x^2] = 20.
    assert!((square - 2.0).abs() < 4.0 * (20.0 / n).sqrt(), "mean square {square}");
}

#[test]
fn bernoulli_frames_leave_at_slots_with_their_probability() {
    for probability in [0.01, 0.3, 0.85, 1.0] {
        let slot = Span::from_ps(51_200);
        let times = times(&with(Departures::Bernoulli { slot_ps: slot, probability }), slot * 100_001);
        assert!(times.iter().all(|at| at % slot.ps() == 0 && *at > 0));
        assert!(times.is_sorted_by(|a, b| a < b));
        let deviation = (1e5 * probability * (1.0 - probability)).sqrt();
        assert!((times.len() as f64 - 1e5 * probability).abs() <= 4.0 * deviation, "{} frames", times.len());
    }
}

#[test]
fn on_off_frames_keep_their_gap_and_the_share_of_on_time() {
    let (gap, on, off) = (1e6, Span::from_us(50), Span::from_us(150));
    let source = with(Departures::OnOff { gap_ps: gap, mean_on_ps: on, mean_off_ps: off, starts_by_chance: false });
    let duration = Span::from_ms(1_000);
    let times = times(&source, duration);
    // Rate while on 1 per us, on for a quarter of the time. Over n cycles the on time of 50 us a cycle has the
    // standard deviation 50 us x sqrt(2 n) x (off share).
    let (expected, cycles) = (250_000.0, 5_000.0_f64);
    let deviation = 50.0 * (2.0 * cycles).sqrt() * 0.75;
    assert!((times.len() as f64 - expected).abs() < 4.0 * deviation, "{} frames", times.len());
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|&between| between >= gap as u64 - 1), "two frames closer than the gap");
    let within = gaps.iter().filter(|&&between| between <= gap as u64 + 1).count() as f64;
    // A gap holds no end of an on period with probability exp(-gap / on).
    let share = within / gaps.len() as f64;
    assert!((share - libm::exp(-1.0 / 50.0)).abs() < 0.005, "share {share}");
}

/// Of many sources, at any time the same share is on: also at the start, where chance decides about it.
#[test]
fn a_source_that_starts_by_chance_is_on_as_often_at_the_start_as_later() {
    let (gap, on, off) = (1e8, Span::from_ms(50), Span::from_ms(150));
    let sent = |starts_by_chance, from_ms: u64| {
        let departures = Departures::OnOff { gap_ps: gap, mean_on_ps: on, mean_off_ps: off, starts_by_chance };
        let window = Span::from_ms(from_ms).ps()..Span::from_ms(from_ms + 10).ps();
        (0..4000)
            .map(|seed| {
                Emissions::new(&with(departures.clone()), Seed::new(seed).stream("on-off"))
                    .map(|emission| emission.at.ps())
                    .take_while(|at| *at < window.end)
                    .filter(|at| window.contains(at))
                    .count() as f64
            })
            .sum::<f64>()
            / 4000.0
    };
    // 100 frames in 10 ms of on time, which is a quarter; a window has 0 to 100, so its deviation is below 44.
    for from_ms in [0, 100, 300] {
        let frames = sent(true, from_ms);
        assert!((frames - 25.0).abs() < 4.0 * 44.0 / 4000f64.sqrt(), "{frames} frames from {from_ms} ms on");
    }
    assert!(sent(false, 0) > 80.0);
}

#[test]
fn a_stream_is_read_as_gap_destination_gap_destination() {
    let departures = Departures::Bernoulli { slot_ps: Span::from_ps(51_200), probability: 0.85 };
    let to = Destination::Uniform((0..32).collect());
    let emissions = Emissions::new(&Source { to, ..with(departures) }, Stream::split_mix_64(1007));
    let mut words = Stream::split_mix_64(1007);
    let mut at = 0;
    for emission in emissions.take(1000) {
        let u = ((words.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        at += 51_200 * (1 + (libm::log(u) / libm::log(1.0 - 0.85)) as u64);
        assert_eq!((emission.at.ps(), u64::from(emission.destination)), (at, words.next_u64() % 32));
    }
}

#[test]
fn sizes_of_a_mix_come_with_their_weights() {
    let mix = vec![(Bytes::new(64), 7), (Bytes::new(594), 4), (Bytes::new(1518), 1)];
    let source = Source { frame_size: FrameSize::Mix(mix.clone()), ..with(Departures::Constant { gap_ps: 1.0 }) };
    let n = 120_000;
    let sizes: Vec<Bytes> =
        Emissions::new(&source, Seed::new(5).stream("mix")).take(n).map(|emission| emission.size).collect();
    for (size, weight) in mix {
        let share = f64::from(weight) / 12.0;
        let count = sizes.iter().filter(|&&drawn| drawn == size).count() as f64;
        let deviation = (n as f64 * share * (1.0 - share)).sqrt();
        assert!((count - n as f64 * share).abs() < 4.0 * deviation, "{count} of {size}");
    }
}

fn departures() -> impl Strategy<Value = Departures> {
    prop_oneof![
        (1.0..1e19f64).prop_map(|mean_gap_ps| Departures::Poisson { mean_gap_ps }),
        (1.0..1e19f64).prop_map(|gap_ps| Departures::Constant { gap_ps }),
        (1u64.., 1e-18..1.0f64)
            .prop_map(|(slot, probability)| Departures::Bernoulli { slot_ps: Span::from_ps(slot), probability }),
        (1.0..1e9f64, 1_000_000u64.., 0u64.., any::<bool>()).prop_map(|(gap_ps, on, off, starts_by_chance)| {
            let (mean_on_ps, mean_off_ps) = (Span::from_ps(on), Span::from_ps(off));
            Departures::OnOff { gap_ps, mean_on_ps, mean_off_ps, starts_by_chance }
        }),
    ]
}

proptest! {
    #[test]
    fn time_never_runs_back_and_nothing_overflows(departures in departures(), start in 0u64..1 << 62, seed: u64) {
        let source = Source { start_ps: Time::from_ps(start), ..with(departures) };
        let mut last = start;
        for emission in Emissions::new(&source, Seed::new(seed).stream("any")).take(100) {
            prop_assert!(emission.at.ps() >= last);
            last = emission.at.ps();
        }
    }
}

#[test]
fn bursts_have_their_load_and_length_and_one_destination_each() {
    let slot = Span::from_ps(51_200);
    for (load, mean) in [(0.85, 1.0), (0.85, 10.0), (0.3, 24.0), (1.0, 4.0)] {
        let list = Destination::Uniform((0..64).collect());
        let source = Source {
            to: list,
            ..with(Departures::Bursts { slot_ps: slot, load, mean_frames: mean, starts_by_chance: false })
        };
        let mut emissions = Emissions::new(&source, Seed::new(5).stream("bursts"));
        let (slots, mut frames, mut bursts, mut inside) = (400_000u64, 0u64, 0u64, None);
        let mut last = 0;
        while emissions.peek().ps() <= slots * slot.ps() {
            let at = emissions.peek().ps() / slot.ps();
            let (to, _) = emissions.draw();
            // Within a burst frames are back to back and have one destination.
            assert!(inside.is_none_or(|before| before == to && at == last + 1));
            (last, frames) = (at, frames + 1);
            inside = (!emissions.burst_ended()).then_some(to);
            bursts += u64::from(inside.is_none());
        }
        // Four standard errors; a burst and the gap behind it have lengths with variances below (mean / load)^2 each.
        let (n, cycle) = (bursts as f64, mean / load);
        assert!((frames as f64 / n - mean).abs() <= 4.0 * mean / n.sqrt(), "{frames} in {bursts}");
        assert!((slots as f64 / n - cycle).abs() <= 4.0 * 2.0 * cycle / n.sqrt(), "{bursts} in {slots}");
        assert!((frames as f64 / slots as f64 - load).abs() <= 8.0 / n.sqrt(), "{frames} in {slots}");
    }
}

#[test]
fn a_single_frame_is_a_burst_of_its_own() {
    let slot = Span::from_ps(51_200);
    let mut emissions =
        Emissions::new(&with(Departures::Bernoulli { slot_ps: slot, probability: 0.5 }), Seed::new(1).stream("single"));
    for _ in 0..20 {
        emissions.draw();
        assert!(emissions.burst_ended());
    }
}

#[test]
fn geometric_draws_are_rounded_logarithms_of_uniform_ones() {
    for probability in [0.02, 0.3, 0.69, 0.71, 0.85, 0.999, 1.0] {
        let geometric = Geometric::new(probability);
        let mut stream = Seed::new(5).stream("geometric");
        for _ in 0..20_000 {
            let failures = geometric.draw(&mut stream.clone());
            let u = stream.open_unit();
            assert_eq!(failures, (libm::log(u) / libm::log1p(-probability)) as u64, "{u} with {probability}");
        }
    }
}

/// Share of sources with a frame in each of the first slots; 20 000 of them.
fn shares(load: f64, mean_frames: f64, starts_by_chance: bool) -> [f64; 3] {
    let slot_ps = Span::from_ps(51_200);
    let source = with(Departures::Bursts { slot_ps, load, mean_frames, starts_by_chance });
    let mut counts = [0.0; 3];
    for seed in 0..20_000 {
        let mut emissions = Emissions::new(&source, Seed::new(seed).stream("start"));
        emissions.draw_slots(41, slot_ps, |at, _, _| match at {
            1 => counts[0] += 1.0,
            2 => counts[1] += 1.0,
            40 => counts[2] += 1.0,
            _ => {}
        });
    }
    counts.map(|count| count / 20_000.0)
}

/// A chain that starts by chance is in equilibrium in each slot; standard errors of .0035 at most.
#[test]
fn bursts_that_start_by_chance_have_their_load_from_the_first_slot_on() {
    for (load, mean) in [(0.5, 10.0), (0.85, 144.0), (0.2, 3.0), (1.0, 10.0)] {
        for share in shares(load, mean, true) {
            assert!((share - load).abs() < 0.015, "{share} of {load}");
        }
    }
    let [first, ..] = shares(0.85, 144.0, false);
    assert!((first - 0.85 / (0.85 + 144.0 * 0.15)).abs() < 0.01, "{first}: it starts between two bursts");
}

proptest! {
    #[test]
    fn frames_drawn_for_many_slots_at_once_are_those_drawn_one_by_one(
        departures in prop_oneof![
            (0.05..=1.0f64, prop::sample::select(vec![1.0, 10.0, 144.0]), prop::bool::ANY)
                .prop_map(|(load, mean_frames, starts_by_chance)| {
                Departures::Bursts { slot_ps: Span::from_ps(51_200), load, mean_frames, starts_by_chance }
            }),
            (0.05..=1.0f64)
                .prop_map(|probability| Departures::Bernoulli { slot_ps: Span::from_ps(51_200), probability }),
            (1..5u32).prop_map(|slots| Departures::Constant { gap_ps: f64::from(slots) * 51_200.0 }),
        ],
        destinations in prop::sample::select(vec![1u32, 2, 3, 31, 32, 1000]),
        (start, length) in (0u64..500, 0u64..3000),
        is_named: bool,
        stretches in prop::collection::vec(1u64..200, 1..20),
    ) {
        let slot = Span::from_ps(51_200);
        let (start_ps, stop_ps) = (Time::ZERO + slot * start, Time::ZERO + slot * (start + length));
        let to = Destination::Uniform((0..destinations).collect());
        let source = Source { to, start_ps, stop_ps, ..with(departures) };
        let stream = if is_named { Seed::new(9).stream("slots") } else { Stream::split_mix_64(9) };
        let mut one_by_one = Emissions::new(&source, stream);
        let (mut at_once, mut end) = (one_by_one.clone(), 0);
        for stretch in stretches {
            end += stretch;
            let mut drawn = Vec::new();
            let next = at_once.draw_slots(end, slot, |at, to, is_last| drawn.push((at, to, is_last)));
            let mut expected = Vec::new();
            while one_by_one.peek() < Time::ZERO + slot * end {
                let at = one_by_one.peek().ps() / slot.ps();
                let (to, _) = one_by_one.draw();
                expected.push((at, to, one_by_one.burst_ended()));
            }
            prop_assert_eq!(drawn, expected);
            prop_assert_eq!(at_once.peek(), one_by_one.peek());
            prop_assert_eq!(next, if one_by_one.peek() == Time::NEVER { u64::MAX } else { one_by_one.peek().ps() / slot.ps() });
        }
    }
}
