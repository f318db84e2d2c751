use super::*;
use crate::units::Rate;

const GIGABIT: StreamOptions = StreamOptions { packets: None, link_rate: Some(Rate::from_gbit_per_s(1)) };

/// Packets of 1514 bytes with `gaps` in ns between them.
fn rows(gaps: &[u64]) -> Vec<DataRow> {
    let mut t_ps = 0;
    let mut rows = vec![];
    for gap in gaps.iter().chain([&0]) {
        rows.push(DataRow { t_ps, seq: 0, payload_bytes: 1448, frame_bytes: 1514, kind: Kind::New });
        t_ps += gap * 1000;
    }
    rows
}

/// A stream of 80 packets whose rates rise by a factor of three around `mean_ns`, no faster than the line.
fn ramp(mean_ns: f64) -> Vec<u64> {
    let shares: Vec<f64> = (0..80).map(|place| libm::pow(3.0, -f64::from(place) / 79.0)).collect();
    let sum: f64 = shares.iter().sum();
    shares.iter().map(|share| (share / sum * 80.0 * mean_ns).max(12_304.0) as u64).collect()
}

fn kinds(gaps: &[u64], options: StreamOptions) -> (Option<u32>, Vec<Shape>) {
    let found = find(&rows(gaps), options);
    (found.packets, found.streams.iter().map(|stream| stream.kind).collect())
}

#[test]
fn ramps_are_found_and_their_length_too() {
    let gaps: Vec<u64> = (0..20).flat_map(|_| ramp(20_000.0)).collect();
    let (packets, kinds) = kinds(&gaps, GIGABIT);
    assert_eq!(packets, Some(80));
    assert!(kinds.len() >= 18 && kinds.iter().all(|kind| *kind == Shape::Ramp), "{kinds:?}");
}

#[test]
fn after_a_stream_that_was_cut_short_the_others_are_found_again() {
    let mut gaps: Vec<u64> = (0..10).flat_map(|_| ramp(20_000.0)).collect();
    gaps.extend(&ramp(20_000.0)[..33]);
    gaps.extend((0..10).flat_map(|_| ramp(20_000.0)));
    let found = find(&rows(&gaps), GIGABIT);
    assert_eq!(found.packets, Some(80));
    let lengths: Vec<u32> = found.streams.iter().map(|stream| stream.packets).collect();
    assert_eq!(lengths.iter().filter(|&&packets| packets != 80).collect::<Vec<_>>(), [&33], "{lengths:?}");
    assert!(found.streams.iter().all(|stream| stream.kind == Shape::Ramp));
}

#[test]
fn the_fitted_gaps_are_those_that_were_made() {
    let gaps: Vec<u64> = (0..20).flat_map(|_| ramp(60_000.0)).collect();
    let stream = find(&rows(&gaps), GIGABIT).streams[3];
    let made = ramp(60_000.0);
    assert!((stream.first_gap_ps / 1e3 / made[0] as f64 - 1.0).abs() < 0.01);
    assert!((stream.last_gap_ps / 1e3 / made[79] as f64 - 1.0).abs() < 0.01);
}

#[test]
fn trains_and_broken_streams_among_ramps_are_reported() {
    let mut gaps: Vec<u64> = (0..10).flat_map(|_| ramp(20_000.0)).collect();
    gaps.extend([12_304; 160]);
    let mut late = ramp(20_000.0);
    late[40] = 4_000_000;
    gaps.extend(&late);
    gaps.extend((0..10).flat_map(|_| ramp(20_000.0)));
    let (_, kinds) = kinds(&gaps, GIGABIT);
    let of = |wanted| kinds.iter().filter(|kind| **kind == wanted).count();
    assert_eq!(of(Shape::Train), 2, "{kinds:?}");
    assert_eq!(of(Shape::Broken), 1, "{kinds:?}");
    assert!(of(Shape::Ramp) >= 17, "{kinds:?}");
}

#[test]
fn packets_at_line_rate_stay_at_the_head_of_the_stream_that_they_spoil() {
    let mut gaps: Vec<u64> = (0..10).flat_map(|_| ramp(50_000.0)).collect();
    let mut spoilt = ramp(50_000.0);
    spoilt[..5].fill(12_304);
    gaps.extend((0..10).flat_map(|_| spoilt.clone()));
    let found = find(&rows(&gaps), GIGABIT);
    let heads: Vec<u32> = found.streams.iter().map(|stream| stream.head_at_line_rate).collect();
    assert_eq!(heads.iter().filter(|&&head| head == 5).count(), 10, "{heads:?}");
}

/// Streams that ask for more than the line carries: packets that are due wait for it, and the next stream begins late.
fn overdriven(mean_ns: f64, streams: usize) -> Vec<u64> {
    let (mut due, mut free, mut before, mut gaps) = (0.0, 0.0, 0.0, vec![]);
    let shares: Vec<f64> = (0..80).map(|place| libm::pow(3.0, -f64::from(place) / 79.0)).collect();
    let sum: f64 = shares.iter().sum();
    for share in std::iter::repeat_n(&shares, streams).flatten() {
        let leaves = if due > free { due } else { free };
        gaps.push((leaves - before) as u64);
        (before, free) = (leaves, leaves + 12_304.0);
        due += share / sum * 80.0 * mean_ns;
    }
    gaps.split_off(1)
}

#[test]
fn streams_whose_tails_asked_for_too_much_begin_with_what_is_left_of_a_gap() {
    let late = |gaps: &[u64]| {
        let found = find(&rows(gaps), GIGABIT).streams;
        let of = |wanted| found.iter().filter(|stream| stream.lateness == wanted).count();
        (of(Lateness::Late), of(Lateness::OnTime))
    };
    let (spilt, whole) = late(&overdriven(15_000.0, 60));
    assert!(spilt >= 30 && whole <= 6, "{spilt} {whole}");
    // The same ramps, clipped at the rate of the line.
    let clipped: Vec<u64> = (0..60).flat_map(|_| ramp(20_000.0)).collect();
    assert_eq!(late(&clipped).0, 0);
}

#[test]
fn even_and_random_gaps_are_no_probe_streams() {
    assert_eq!(kinds(&[50_000; 4000], GIGABIT), (None, vec![]));
    let mut state = 1;
    let random: Vec<u64> = (0..8000)
        .map(|_| {
            state = crate::rng::mix(state);
            12_304 + state % 40_000
        })
        .collect();
    assert_eq!(kinds(&random, GIGABIT), (None, vec![]));
    assert_eq!(kinds(&[], GIGABIT), (None, vec![]));
}

#[test]
fn a_given_length_cuts_even_gaps_into_flat_streams() {
    let (_, kinds) = kinds(&[50_000; 400], StreamOptions { packets: Some(80), ..GIGABIT });
    assert!(kinds.len() == 5 && kinds.iter().all(|kind| *kind == Shape::Flat), "{kinds:?}");
}
