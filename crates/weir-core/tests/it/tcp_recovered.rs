//! What lets a window grow after losses were repaired, or after a timeout. That it is the threshold when they are is checked
//! for every connection of these tests, in `Pair::hand_to_sender`.

use weir_core::cc::{self, SlowStart};
use weir_core::tcp::{Config, LostRetransmissions, Segment};
use weir_core::units::{Bytes, Span, Time};

use crate::tcp::{Fate, Pair, SEGMENT, TEN_MS, config, loses_once};
use crate::tcp_line::at;

fn controllers() -> [cc::Config; 3] {
    let steep = cc::CubicConfig { c: 0.4, beta: 0.853, fast_convergence: false, slow_start: SlowStart::Standard };
    [cc::Config::reno(), cc::Config::cubic(), cc::Config::Cubic(steep)]
}

/// Each segment is acknowledged, and the receiver's window is large.
fn each_segment(congestion_control: cc::Config) -> Config {
    Config { congestion_control, delayed_ack_segments: 1, receive_buffer_bytes: Bytes::new(1 << 24), ..config() }
}

/// The window at `until`, on a path of 20 ms without a rate.
fn window_at(config: &Config, until: Time, fate: impl FnMut(u64, &Segment) -> Fate) -> u64 {
    let mut pair = Pair::transfer(config, 4000 * SEGMENT, TEN_MS, fate);
    pair.run(until).sender.window().count()
}

#[test]
fn what_arrived_while_losses_were_repaired_does_not_let_the_window_grow() {
    for control in controllers() {
        let config = each_segment(control);
        // Ten of the 40 of the third round trip are lost: the last repair acknowledges many that have arrived before.
        let lost: Vec<u64> = (35..45).collect();
        let mut pair = Pair::transfer(&config, 4000 * SEGMENT, TEN_MS, loses_once(&lost));
        pair.run(at(190));
        let &[(over, window)] = &pair.recovered[..] else { panic!("{:?}", pair.recovered) };
        let grown = |later| window_at(&config, over + Span::from_ms(later), loses_once(&lost)) - window.count();
        assert!(over < at(150), "{over:?}");
        // Congestion avoidance: RFC 5681, 3.1.
        assert!(grown(19) <= SEGMENT, "{} B within a round trip of {window}", grown(19));
        assert!((SEGMENT / 2..=3 * SEGMENT).contains(&grown(59)), "{} B in three of {window}", grown(59));
    }
}

#[test]
fn what_only_came_out_of_order_lets_the_window_grow_as_if_it_had_not() {
    for control in controllers() {
        let config = each_segment(control);
        // One loss ends slow start. Segments arrive one by one, and every tenth is overtaken by one, which is no loss.
        let spaced = |swaps: bool| {
            let mut loses = loses_once(&[20]);
            move |count: u64, segment: &Segment| {
                let place = segment.seq / SEGMENT;
                let behind = if swaps && place.is_multiple_of(10) { 1_500 } else { 0 };
                match loses(count, segment) {
                    Fate::Passes if segment.len > 0 => Fate::IsLate(Span::from_ns(1_000 * place + behind)),
                    fate => fate,
                }
            }
        };
        let (in_order, out_of_order) = (spaced(false), spaced(true));
        let windows = [window_at(&config, at(600), in_order), window_at(&config, at(600), out_of_order)];
        assert!(windows[0].abs_diff(windows[1]) <= SEGMENT, "{windows:?}");
    }
}

#[test]
fn after_a_timeout_an_acknowledgement_counts_for_one_segment_however_much_it_covers() {
    for control in controllers() {
        let lost_retransmissions = LostRetransmissions::Timeout;
        let config = Config { lost_retransmissions, ..each_segment(control) };
        // One of a window of 40 is lost twice: only a timeout finds that, and its repair acknowledges all that came behind.
        let mut pair = Pair::transfer(&config, 4000 * SEGMENT, TEN_MS, loses_once(&[30, 30]));
        while pair.sender.counters().timeout_retransmits == 0 {
            let next = pair.sender.poll_timeout();
            pair.run(next.min(pair.now + TEN_MS));
        }
        let before = (pair.sender.window().count(), pair.sender.acked().count());
        let until = pair.now + TEN_MS * 2;
        pair.run(until);
        let grown = (pair.sender.window().count() - before.0, pair.sender.acked().count() - before.1);
        assert!(grown.0 == SEGMENT && grown.1 > 30 * SEGMENT, "{grown:?}");
    }
}
