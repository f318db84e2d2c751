//! Estimators against a queue whose available bandwidth is known, and against the numbers of the design.

mod probing;

use weir_core::rapid::{self, Config, Denoising, Estimator, Ramp, Sample, Terms};
use weir_core::rng::Seed;
use weir_core::units::{Bytes, Rate, Span, Time};

/// A full frame with preamble and gap; 1472 B of payload of UDP give the others' frames.
const PACKET: Bytes = Bytes::new(1538);
const LINK: Rate = Rate::from_gbit_per_s(1);
/// 12.304 us.
const TIME: Span = Span::from_ps(12_304_000);

fn mbps(rate: f64) -> Rate {
    Rate::from_bps((rate * 1e6) as u64)
}

fn ramp() -> Ramp {
    Ramp { packets: 80, rho: 3.0, rates: None, clip: false }
}

fn config(estimator: Estimator) -> Config {
    Config { ramp: ramp(), estimator, ..Config::over(LINK) }
}

/// What others send through the queue: times of arrival.
#[derive(Clone, Copy, Debug)]
enum Cross {
    Constant(f64),
    Poisson(f64),
    Bursts(f64),
}

impl Cross {
    fn arrivals(self, until: Time) -> Vec<Time> {
        let mut chance = Seed::new(7).stream("cross");
        let (rate, burst) = match self {
            Cross::Constant(rate) | Cross::Poisson(rate) => (rate, 1_u32),
            Cross::Bursts(rate) => (rate, 8),
        };
        let gap = 1538.0 * 8.0 / rate * 1e6 * f64::from(burst);
        let (mut at, mut list) = (3.3e6, vec![]);
        while at < until.ps() as f64 {
            list.extend((0..burst).map(|i| Time::from_ps(at as u64) + TIME * u64::from(i)));
            at += match self {
                Cross::Poisson(_) => gap * chance.exponential(),
                Cross::Constant(_) | Cross::Bursts(_) => gap,
            };
        }
        list
    }
}

/// Streams of the mean rate `rate` through a queue of the link's rate that `cross` uses, too, each stamped when it leaves
/// that queue. Nothing follows the estimates.
fn streams(ramp: &Ramp, rate: f64, cross: Cross, count: usize) -> Vec<Vec<Sample>> {
    let gaps = ramp.gaps(mbps(rate), PACKET, LINK);
    let length = gaps.iter().fold(Span::ZERO, |sum, &gap| sum + gap);
    let mut others = cross.arrivals(Time::ZERO + length * (count as u64 + 1)).into_iter().peekable();
    let (mut now, mut link, mut free) = (Time::ZERO, Time::ZERO, Time::ZERO);
    let mut made = vec![];
    for _ in 0..count {
        let mut samples = vec![];
        for &gap in &gaps {
            now += gap;
            // The link of the sender: no gap is shorter than what a packet takes.
            link = now.max(link + TIME);
            while others.peek().is_some_and(|&at| at <= link) {
                free = others.next().expect("one was seen").max(free) + TIME;
            }
            free = free.max(link) + TIME;
            samples.push(Sample { due: now, sent: link, received: free, wire: PACKET });
        }
        made.push(samples);
    }
    made
}

fn merged(samples: &[Sample], every: usize) -> Vec<Sample> {
    let kept = samples.chunks(every).map(|pair| Sample { wire: PACKET * pair.len() as u64, ..pair[pair.len() - 1] });
    kept.collect()
}

/// The 10th, 50th and 90th percentile of the estimates, Mbit/s, of at most the link's rate.
fn percentiles(config: &Config, rate: f64, cross: Cross, delayed: usize) -> [f64; 3] {
    let streams = streams(&config.ramp, rate, cross, 400);
    let gaps = config.ramp.gaps(mbps(rate), PACKET, LINK);
    let high = Ramp::ends(&gaps, PACKET).1;
    let least = streams.iter().flatten().map(|sample| sample.received - sample.sent).min().expect("samples");
    let mut found: Vec<f64> = streams[20..]
        .iter()
        .map(|samples| {
            let samples = merged(samples, delayed);
            let backlog = samples[0].received - samples[0].sent - least;
            let terms = Terms { high, link: LINK, backlog_s: backlog.as_secs_f64() };
            let estimate = rapid::estimate(config, &samples, &terms).expect("enough samples");
            estimate.rate_bps.min(1e9) / 1e6
        })
        .collect();
    found.sort_by(f64::total_cmp);
    [0.1, 0.5, 0.9].map(|share| found[(share * (found.len() - 1) as f64) as usize])
}

fn gap(epsilon: Span, sum: u32) -> Estimator {
    Estimator::Gap { epsilon_ps: epsilon, excursion: 4, sum, scheduled: false }
}

fn trend() -> Estimator {
    Estimator::Trend { tolerance_ps: Span::from_us(20), tolerance_gaps: 1.5 }
}

fn smooth() -> Estimator {
    Estimator::Smooth { weight: 0.875, epsilon_ps: Span::from_us(1), excursion: 4 }
}

fn chirp() -> Estimator {
    Estimator::Chirp { factor: 1.5, excursion: 5 }
}

/// Medians of an independent prototype (docs/rapid.md), Mbit/s: available are 687 at a rate of 650, 269 at one of 250.
#[test]
fn estimators_see_what_a_prototype_saw() {
    let constant = (650.0, Cross::Constant(313.0), 1);
    let delayed = (650.0, Cross::Constant(313.0), 2);
    let heavy = (250.0, Cross::Constant(731.0), 1);
    let poisson = (650.0, Cross::Poisson(313.0), 1);
    let cases = [
        ("trend", trend(), constant, 676.0),
        ("trend", trend(), delayed, 672.0),
        ("trend", trend(), heavy, 251.0),
        ("trend", trend(), poisson, 746.0),
        ("chirp", chirp(), constant, 833.0),
        ("chirp", chirp(), delayed, 744.0),
        ("chirp", chirp(), heavy, 317.0),
        ("chirp", chirp(), poisson, 807.0),
        ("smooth", smooth(), constant, 762.0),
        ("smooth", smooth(), delayed, 682.0),
        ("smooth", smooth(), heavy, 294.0),
        ("smooth", smooth(), poisson, 806.0),
        ("gap 1 us", gap(Span::from_us(1), 1), constant, 1000.0),
        ("gap 1 us", gap(Span::from_us(1), 1), delayed, 672.0),
        ("gap 1 us", gap(Span::from_us(1), 1), poisson, 1000.0),
        ("gap 10 us", gap(Span::from_us(10), 1), constant, 1000.0),
        ("gap 10 us", gap(Span::from_us(10), 1), delayed, 1000.0),
        ("gap 10 us", gap(Span::from_us(10), 1), heavy, 449.0),
        ("gap 10 us, 2", gap(Span::from_us(10), 2), delayed, 951.0),
        ("gap 10 us, 3", gap(Span::from_us(10), 3), delayed, 816.0),
        ("gap 10 us, 4", gap(Span::from_us(10), 4), delayed, 782.0),
    ];
    for (name, estimator, (rate, cross, every), expected) in cases {
        let [_, median, _] = percentiles(&config(estimator), rate, cross, every);
        assert!((median / expected - 1.0).abs() < 0.09, "{name}, {cross:?}, one in {every}: {median}, not {expected}");
    }
}

/// The estimator is blind: excess is one packet's time or none, never four times in a row more than 10 us.
#[test]
fn a_threshold_of_10_us_sees_no_cross_traffic_at_a_gigabit() {
    for every in [1, 2] {
        let [low, ..] = percentiles(&config(gap(Span::from_us(10), 1)), 650.0, Cross::Constant(313.0), every);
        assert!((low - 1000.0).abs() < 1e-9, "{low}");
    }
}

#[test]
fn the_fluid_estimator_is_near_the_truth_under_every_cross_traffic() {
    let fluid = config(Estimator::Fluid { bottleneck_bps: None });
    let low = Config { ramp: Ramp { packets: 160, ..ramp() }, ..fluid.clone() };
    for (rate, cross, truth) in [
        (650.0, Cross::Constant(313.0), 687.0),
        (650.0, Cross::Poisson(313.0), 687.0),
        (250.0, Cross::Constant(731.0), 269.0),
        (650.0, Cross::Bursts(313.0), 687.0),
    ] {
        for every in [1, 2] {
            let [p10, median, p90] = percentiles(&fluid, rate, cross, every);
            assert!((median / truth - 1.0).abs() < 0.07, "{cross:?}, one in {every}: {median}");
            // What is left varies itself: 38 packets of others come during a stream, by chance 6 more or less, so that
            // four fifths of all streams see it within a fifth. Twice that.
            assert!((p90 - p10) / truth < 0.4, "{cross:?}, one in {every}: {p10} to {p90}");
            let [long10, _, long90] = percentiles(&low, rate, cross, every);
            assert!(
                long90 - long10 < p90 - p10 + 1.0,
                "longer streams tell more: {p10} to {p90}, {long10} to {long90}"
            );
        }
    }
}

/// By chance others send more or less while a stream lasts: what is left over it is not what is left on average.
#[test]
fn where_the_queue_never_empties_the_fluid_estimator_reports_what_was_left_over_each_stream() {
    let fluid = config(Estimator::Fluid { bottleneck_bps: None });
    // More than there is room for, so that the queue only grows: 269 are available.
    let rate = 330.0;
    let gaps = ramp().gaps(mbps(rate), PACKET, LINK);
    let high = Ramp::ends(&gaps, PACKET).1;
    for cross in [Cross::Bursts(731.0), Cross::Poisson(731.0), Cross::Constant(731.0)] {
        let streams = streams(&ramp(), rate, cross, 200);
        let arrivals = cross.arrivals(streams[199][79].sent);
        let mut spread = (f64::INFINITY, 0.0_f64);
        for stream in &streams[40..] {
            let (first, last) = (stream[0], stream[79]);
            let others = arrivals.iter().filter(|&&at| at > first.sent && at <= last.sent).count() as f64;
            let truth = 1e9 - others * 12_304.0 / (last.sent - first.sent).as_secs_f64();
            let backlog = (first.received - first.sent - TIME).as_secs_f64();
            assert!(backlog > 1e-3, "the queue holds much: {backlog}");
            let terms = Terms { high, link: LINK, backlog_s: backlog };
            let found = rapid::estimate(&fluid, stream, &terms).expect("samples").rate_bps;
            assert!((found / truth - 1.0).abs() < 1e-3, "{cross:?}: {found}, not {truth}");
            spread = (spread.0.min(truth), spread.1.max(truth));
        }
        if matches!(cross, Cross::Poisson(_)) {
            assert!(spread.1 - spread.0 > 0.2 * 269e6, "{cross:?}: there is something to tell apart: {spread:?}");
        }
    }
}

#[test]
fn behind_a_link_that_is_slower_than_the_senders_the_fluid_estimator_must_know_its_rate() {
    let narrow = mbps(400.0);
    for left in [120.0, 240.0, 320.0] {
        let gaps = ramp().gaps(mbps(0.95 * left), PACKET, LINK);
        // What a queue delays that drains at the rate of the narrow link, others having what is not left of it.
        let (mut now, mut delay, mut samples) = (Time::ZERO, 0.0_f64, vec![]);
        for &gap in &gaps {
            now += gap;
            let grown = PACKET.count() as f64 * 8.0 - left * 1e6 * gap.as_secs_f64();
            delay = (delay + grown / narrow.bps() as f64).max(0.0);
            let received = now + Span::from_ps((delay * 1e12) as u64);
            samples.push(Sample { due: now, sent: now, received, wire: PACKET });
        }
        let terms = Terms { high: Ramp::ends(&gaps, PACKET).1, link: LINK, backlog_s: 0.0 };
        let estimate = |bottleneck_bps| {
            let config = config(Estimator::Fluid { bottleneck_bps });
            rapid::estimate(&config, &samples, &terms).expect("samples").rate_bps / 1e6
        };
        let (reported, not_reported) = (estimate(Some(narrow)), estimate(None));
        assert!((reported / left - 1.0).abs() < 0.01, "{left}: {reported}");
        assert!((not_reported / left - 1.0).abs() > 0.1, "{left}: {not_reported}, which is as good without");
        // One that is faster than the sender's own link changes nothing.
        assert_eq!(estimate(Some(mbps(10_000.0))), not_reported);
    }
}

#[test]
fn an_empty_path_gives_the_highest_rate_that_was_tried() {
    for estimator in [trend(), smooth(), gap(Span::from_us(1), 1), chirp(), Estimator::Fluid { bottleneck_bps: None }] {
        let config = Config { ramp: Ramp { clip: true, ..ramp() }, ..config(estimator) };
        let high = Ramp::ends(&config.ramp.gaps(mbps(300.0), PACKET, LINK), PACKET).1;
        let samples = &streams(&config.ramp, 300.0, Cross::Constant(0.001), 2)[1];
        let found = rapid::estimate(&config, samples, &Terms { high, link: LINK, backlog_s: 0.0 }).expect("samples");
        assert_eq!((found.rate_bps, found.excursion), (high.bps() as f64, None), "{:?}", config.estimator);
    }
}

#[test]
fn receivers_that_gather_packets_hide_the_path_from_an_estimator_that_does_not_know() {
    let gathered: Vec<Vec<Sample>> = streams(&ramp(), 650.0, Cross::Constant(313.0), 200)
        .into_iter()
        .map(|stream| {
            let at = |time: Time| Time::from_ps(time.ps().next_multiple_of(Span::from_us(100).ps()));
            stream.into_iter().map(|sample| Sample { received: at(sample.received), ..sample }).collect()
        })
        .collect();
    let high = Ramp::ends(&ramp().gaps(mbps(650.0), PACKET, LINK), PACKET).1;
    let median = |denoising: Denoising, estimator: Estimator| {
        let config = Config { denoising, ..config(estimator) };
        let delay = |sample: &Sample| sample.received - sample.sent;
        let least = gathered.iter().flatten().map(delay).min().expect("samples");
        let mut found: Vec<f64> = gathered[20..]
            .iter()
            .map(|stream| {
                let terms = Terms { high, link: LINK, backlog_s: (delay(&stream[0]) - least).as_secs_f64() };
                rapid::estimate(&config, stream, &terms).expect("samples").rate_bps.min(1e9) / 1e6
            })
            .collect();
        found.sort_by(f64::total_cmp);
        found[found.len() / 2]
    };
    assert!(median(Denoising::None {}, gap(Span::from_us(1), 1)) > 990.0);
    let batches = Denoising::Batches { within_ps: Span::from_us(6) };
    let known = median(batches, Estimator::Fluid { bottleneck_bps: None });
    assert!((known / 687.0 - 1.0).abs() < 0.07, "{known}");
    let spikes = Denoising::Spikes { rise_ps: Span::from_us(30), fall_ps: Span::from_us(20) };
    let averaged = median(spikes, smooth());
    assert!((averaged / 687.0 - 1.0).abs() < 0.35, "{averaged}");
}

/// A stall of 4 ms, and what was late leaves back to back into a path with little room: the measured rate before the
/// excursion is that of the stall, the scheduled one that of the stream.
#[test]
fn a_stall_ruins_an_estimate_from_the_gaps_that_were_sent_and_not_one_from_those_that_were_asked_for() {
    let gaps = ramp().gaps(mbps(250.0), PACKET, LINK);
    let (mut due, mut sent, mut free) = (Time::ZERO, Time::ZERO, Time::ZERO);
    let samples: Vec<Sample> = (0..gaps.len())
        .map(|place| {
            due += gaps[place];
            let stalled = if place == 20 { due + Span::from_ms(1) } else { due };
            sent = stalled.max(sent + TIME);
            free = free.max(sent) + TIME * 3;
            Sample { due, sent, received: free, wire: PACKET }
        })
        .collect();
    let high = Ramp::ends(&gaps, PACKET).1;
    let rate = |scheduled| {
        let estimator = Estimator::Gap { epsilon_ps: Span::from_us(10), excursion: 4, sum: 1, scheduled };
        let terms = Terms { high, link: LINK, backlog_s: 0.0 };
        rapid::estimate(&config(estimator), &samples, &terms).expect("samples").rate_bps / 1e6
    };
    assert!(rate(false) < 15.0, "{}", rate(false));
    assert!(rate(true) > 150.0 && rate(true) < 250.0, "{}", rate(true));
}
