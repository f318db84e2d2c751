//! Connections that are drawn segment by segment.

use weir_core::columns::Table;
use weir_core::trace::{Options, Segment};
use weir_core::units::Span;

use super::{Frames, analysed, counts, numbered, pcapng, segment};

/// A connection of a sender with segments of 1000 bytes.
pub(super) struct Talk {
    pub(super) frames: Frames,
    ns: u64,
}

impl Talk {
    /// A handshake whose round trip is 10 ms, at the sender.
    pub(super) fn begun() -> Talk {
        let mut talk = Talk { frames: Vec::new(), ns: 0 };
        let syn = Segment { flags: Segment::SYN, seq: 999, window: 65535, window_shift: Some(7), ..Segment::default() };
        talk.say(true, syn);
        let answer = Segment { flags: Segment::SYN | Segment::ACK, ack: 1000, seq: 4999, ..syn };
        talk.ns = 10_000_000;
        talk.say(false, answer);
        talk.after(1_000).ack_of_handshake()
    }

    fn say(&mut self, forward: bool, said: Segment) {
        let id = self.frames.len() as u16 + 1; // 0 says nothing
        self.frames.push((self.ns, numbered(forward, id, said)));
    }

    pub(super) fn after(mut self, ns: u64) -> Talk {
        self.ns += ns;
        self
    }

    fn ack_of_handshake(mut self) -> Talk {
        let ack = Segment { flags: Segment::ACK, seq: 1000, ack: 5000, window: 512, ..Segment::default() };
        self.say(true, ack);
        self
    }

    pub(super) fn data(mut self, number: u32) -> Talk {
        let (seq, payload) = (1000 + number * 1000, 1000);
        let data = Segment { flags: Segment::ACK, seq, ack: 5000, window: 512, payload, ..Segment::default() };
        self.say(true, data);
        self
    }

    pub(super) fn ack(mut self, number: u32, blocks: &[(u32, u32)]) -> Talk {
        let mut ack =
            Segment { flags: Segment::ACK, seq: 5000, ack: 1000 + number * 1000, window: 512, ..Segment::default() };
        for (place, &(left, right)) in blocks.iter().enumerate() {
            ack.blocks[place] = (1000 + left * 1000, 1000 + right * 1000);
            ack.sacks += 1;
        }
        self.say(false, ack);
        self
    }

    /// The count in `column` of the data's direction.
    pub(super) fn tables(&self) -> Vec<Table> {
        analysed(&pcapng(&self.frames), Options { every: Span::from_ms(100), ..Options::default() })
    }

    fn flow(&self, column: &str) -> u64 {
        counts(&self.tables(), "flows", column)[0]
    }
}

#[test]
fn a_lost_segment_sent_again_is_a_retransmission_and_gives_no_round_trip_time() {
    let ms = 1_000_000;
    let talk = Talk::begun().data(0).data(1).data(2).data(3).after(10 * ms).ack(1, &[]);
    let talk = talk.ack(1, &[(2, 3)]).ack(1, &[(2, 4)]).data(1).after(10 * ms).ack(4, &[]);
    assert_eq!(talk.flow("retransmitted"), 1);
    assert_eq!(talk.flow("reordered"), 0);
    assert_eq!(talk.flow("recoveries"), 1);
    assert_eq!(talk.flow("new_bytes"), 4000);
    assert_eq!(talk.flow("acked_bytes"), 4000 + 1, "the SYN takes a number");
    assert_eq!(counts(&talk.tables(), "flows", "dup_acks"), [0, 2]);
    assert_eq!(talk.flow("rtts"), 2, "the SYN and the first segment; the last acknowledgment had waited");
    assert_eq!(counts(&talk.tables(), "repeats", "times"), [1]);
}

#[test]
fn an_acknowledgment_that_waited_for_one_of_several_lost_segments_gives_no_round_trip_time() {
    let ms = 1_000_000;
    let talk = Talk::begun().data(0).data(1).data(2).data(3).data(4).after(10 * ms).ack(1, &[(2, 3)]);
    let talk = talk.after(200 * ms).data(1).data(3).after(10 * ms).ack(3, &[]).ack(5, &[]);
    assert_eq!(talk.flow("rtts"), 2, "the SYN and the first segment");
    assert!(talk.flow("rtt_max_ps") < 11 * 1_000_000_000);
}

#[test]
fn a_receiver_that_had_a_segment_already_says_that_it_was_sent_for_nothing() {
    let ms = 1_000_000;
    let talk =
        Talk::begun().data(0).data(1).after(300 * ms).data(0).after(ms).ack(2, &[]).after(10 * ms).ack(2, &[(0, 1)]);
    assert_eq!(talk.flow("retransmitted"), 1);
    assert_eq!(talk.flow("timeouts"), 1);
    assert_eq!(talk.flow("spurious"), 1);
    assert_eq!(counts(&talk.tables(), "repeats", "spurious_segments"), [1]);
}

#[test]
fn a_segment_that_fills_a_hole_at_once_was_reordered_and_later_was_sent_again() {
    let us = 1_000;
    let soon = Talk::begun().data(0).data(2).after(500 * us).data(1);
    assert_eq!((soon.flow("reordered"), soon.flow("retransmitted")), (1, 0));
    let late = Talk::begun().data(0).data(2).after(11_000 * us).data(1);
    assert_eq!((late.flow("reordered"), late.flow("retransmitted")), (0, 1));
}

#[test]
fn frames_that_were_captured_twice_are_not_taken_for_sent_again() {
    let ms = 1_000_000;
    let talk = Talk::begun().data(0).data(1).after(300 * ms).data(0).after(ms).ack(2, &[]);
    let twice = Talk { frames: talk.frames.iter().flat_map(|frame| [frame.clone(), frame.clone()]).collect(), ns: 0 };
    assert_eq!((talk.flow("retransmitted"), talk.flow("duplicates")), (1, 0));
    assert_eq!((twice.flow("retransmitted"), twice.flow("duplicates")), (1, 4));
}

#[test]
fn silence_without_anything_outstanding_is_idle_beyond_a_round_trip() {
    let ms = 1_000_000;
    let talk = Talk::begun().data(0).after(10 * ms).ack(1, &[]).after(500 * ms).data(1).after(10 * ms).ack(2, &[]);
    let idle = talk.flow("idle_ps") / 1_000_000;
    assert!(idle.abs_diff(490_000) <= 1, "{idle} us");
    assert_eq!(counts(&talk.tables(), "stalls", "length_ps"), [0; 0]);
    let stalled = Talk::begun().data(0).after(500 * ms).data(0).after(10 * ms).ack(1, &[]);
    assert_eq!(counts(&stalled.tables(), "stalls", "cause"), [0]);
    assert_eq!(stalled.flow("idle_ps"), 0);
}

#[test]
fn bytes_that_were_acknowledged_and_never_seen_are_the_fault_of_the_capture() {
    let talk = Talk::begun().data(0).data(3).after(10_000_000).ack(4, &[]);
    assert_eq!(talk.flow("unseen_bytes"), 2000);
    assert_eq!(talk.flow("retransmitted"), 0);
}

#[test]
fn ports_that_are_used_again_make_another_connection() {
    let mut twice = Talk::begun().data(0);
    let mut second = Talk::begun().frames;
    let syn = Segment { flags: Segment::SYN, seq: 70_000, window: 65535, ..Segment::default() };
    second[0].1 = segment(true, syn);
    twice.frames.extend(second.into_iter().map(|(ns, frame)| (ns + 1_000_000_000, frame)));
    assert_eq!(counts(&twice.tables(), "flows", "connection"), [0, 0, 1, 1]);
}

#[test]
fn interval_rows_add_up_to_the_totals_of_their_flows() {
    let mut talk = Talk::begun();
    for number in 0..200 {
        talk = talk.data(number).after(10_000_000).ack(number + 1, &[]);
    }
    let tables = talk.tables();
    for column in ["packets", "frame_bytes", "payload_bytes", "new_bytes", "acked_bytes"] {
        let whole: u64 = counts(&tables, "flows", column).iter().sum();
        assert_eq!(counts(&tables, "intervals", column).iter().sum::<u64>(), whole, "{column}");
    }
    assert_eq!(counts(&tables, "gaps", "gaps").iter().sum::<u64>(), 199);
}

#[test]
fn a_capture_may_begin_anywhere() {
    let whole = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/slow-transfer.pcap")).expect("kept");
    let mut starts = vec![24];
    while let Some(&start) = starts.last().filter(|&&start| start < whole.len()) {
        let length = u32::from_le_bytes(whole[start + 8..start + 12].try_into().expect("four bytes"));
        starts.push(start + 16 + length as usize);
    }
    for (number, &start) in starts.iter().enumerate().step_by(17) {
        let tables = analysed(&[&whole[..24], &whole[start..]].concat(), Options::default());
        let places = counts(&tables, "losses", "start").into_iter().zip(counts(&tables, "losses", "end"));
        assert!(places.into_iter().all(|(start, end)| start < end), "from frame {number}");
    }
}

#[test]
fn losses_below_the_first_number_that_is_seen_stay_apart() {
    let ms = 1_000_000;
    let mut talk = Talk { frames: Vec::new(), ns: 0 };
    for number in 5..9 {
        talk = talk.data(number).after(ms);
    }
    talk = talk.data(1).after(ms).data(2).after(ms).data(4);
    let starts = counts(&talk.tables(), "losses", "start");
    assert_eq!(starts.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>(), [1000, 2000]);
}
