//! Delivery-rate samples: how fast the network has delivered what was under way together with a segment.
//!
//! A segment remembers, from when it is sent, how much had arrived by then and when that was known. When it is
//! acknowledged itself, what has arrived since, over the time that took, is a rate; it took no less time than the
//! sending did. A sample of a time in which the application had nothing to send is marked.
//!
//! Source: BBR draft, 4.1. Departures and arrivals are exact here, so that no clock is too coarse.

use std::collections::VecDeque;

use crate::tcp::scoreboard::Delivered;
use crate::units::{Bytes, Rate, Span, Time};

/// What an acknowledgement that reports new data shows, in the terms of the draft: `RS` and what goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// What has arrived since the segment was sent that was sent last of those that arrived now.
    pub delivered: Bytes,
    /// The time that took; none: so short that it means nothing.
    pub interval: Option<Span>,
    /// Whether the application had nothing to send within it.
    pub is_app_limited: bool,
    /// All that had arrived when that segment was sent.
    pub prior_delivered: Bytes,
    /// What was in flight just after that segment was sent, with it.
    pub sent_into: Bytes,
    /// What was found lost since.
    pub lost: Bytes,
    /// What this acknowledgement reports to have arrived, in order or not.
    pub newly_delivered: Bytes,
    /// What it shows to be lost.
    pub newly_lost: Bytes,
    /// All that has arrived.
    pub total_delivered: Bytes,
    /// What is in flight now.
    pub in_flight: Bytes,
    /// Whether the window was used up since the sample before.
    pub is_window_limited: bool,
    /// A round-trip time, of a segment that was sent once.
    pub rtt: Option<Span>,
}

impl Sample {
    /// The delivery rate, if the sample shows one.
    pub fn rate(&self) -> Option<Rate> {
        self.interval.map(|interval| self.delivered / interval)
    }
}

/// A segment that was found lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Its length.
    pub size: Bytes,
    /// What was in flight just after it was sent, with it.
    pub sent_into: Bytes,
    /// What was found lost since it was sent, with it.
    pub lost: Bytes,
    /// Whether the application had nothing to send when it was sent, or shortly before.
    pub is_app_limited: bool,
    /// Whether the segment before it was not the one that was found lost last.
    pub begins_range: bool,
    /// All that has arrived.
    pub total_delivered: Bytes,
}

/// What a segment remembers from when it was sent last.
#[derive(Clone, Copy, Debug)]
struct Remembered {
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    in_flight: u64,
    lost: u64,
    is_app_limited: bool,
}

/// Takes samples. Segments bear the numbers that the scoreboard gives them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampler {
    /// All that has arrived, and when that was known.
    delivered: u64,
    delivered_at: Time,
    /// When the segment was sent that was sent last of those that have arrived; after a pause, when the pause ended.
    first_sent: Time,
    /// While less than this has arrived, samples are application-limited; 0: they are not.
    app_limited: u64,
    lost: u64,
    newly_lost: u64,
    /// The number behind the segment that was found lost last.
    behind_lost: u64,
    window_limited: bool,
    /// Of segments that are not acknowledged in order, and the number of the first of them.
    segments: VecDeque<Remembered>,
    first: u64,
}

impl Sampler {
    /// Of a connection that sends its first data, segment `first`, at `now` or later.
    pub(crate) fn new(now: Time, first: u64) -> Sampler {
        Sampler { delivered_at: now, first_sent: now, first, ..Sampler::default() }
    }

    /// Segment `place` was sent, for the first time or again, which changed what is in flight from `before` to `after`.
    pub(crate) fn on_sent(&mut self, now: Time, place: u64, before: Bytes, after: Bytes) {
        if before == Bytes::ZERO {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let remembered = Remembered {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            in_flight: after.count(),
            lost: self.lost,
            is_app_limited: self.app_limited > 0,
        };
        match self.segments.get_mut((place - self.first) as usize) {
            Some(slot) => *slot = remembered,
            None => self.segments.push_back(remembered),
        }
    }

    /// The window is used up.
    pub(crate) fn on_full_window(&mut self) {
        self.window_limited = true;
    }

    /// What is sent from now on until all `in_flight` has arrived is sent too late to show the rate of the network.
    pub(crate) fn limit(&mut self, in_flight: Bytes) {
        self.app_limited = (self.delivered + in_flight.count()).max(1);
    }

    /// Whether the application had nothing to send for a while.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// Something has arrived.
    pub(crate) fn on_delivered(&mut self, now: Time, news: &Delivered) {
        if news.bytes > 0 {
            self.delivered += news.bytes;
            self.delivered_at = now;
        }
    }

    /// Segment `place` of `len` bytes was found lost.
    pub(crate) fn on_lost(&mut self, place: u64, len: u32) -> Option<Loss> {
        let remembered = *self.segments.get(place.checked_sub(self.first)? as usize)?;
        self.lost += u64::from(len);
        self.newly_lost += u64::from(len);
        let begins_range = place != self.behind_lost;
        self.behind_lost = place + 1;
        Some(Loss {
            size: Bytes::new(len.into()),
            sent_into: Bytes::new(remembered.in_flight),
            lost: Bytes::new(self.lost - remembered.lost),
            is_app_limited: remembered.is_app_limited,
            begins_range,
            total_delivered: Bytes::new(self.delivered),
        })
    }

    /// The sample of an acknowledgement that reported new data at `now`, and left `in_flight`. Segments before `first` are
    /// forgotten. A segment that arrives sooner after it was sent than `least` was sent twice, and the first has arrived.
    pub(crate) fn sample(&mut self, now: Time, news: &Delivered, left: &Left) -> Option<Sample> {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let (sent, place) = news.last()?;
        let remembered = *self.segments.get(place.checked_sub(self.first)? as usize)?;
        let gone = left.first.saturating_sub(self.first).min(self.segments.len() as u64);
        self.segments.drain(..gone as usize);
        self.first += gone;
        self.first_sent = sent;
        let sending = sent.saturating_since(remembered.first_sent);
        let interval = sending.max(now.saturating_since(remembered.delivered_at));
        Some(Sample {
            delivered: Bytes::new(self.delivered - remembered.delivered),
            interval: Some(interval).filter(|&interval| interval >= left.least_rtt && interval > Span::ZERO),
            is_app_limited: remembered.is_app_limited,
            prior_delivered: Bytes::new(remembered.delivered),
            sent_into: Bytes::new(remembered.in_flight),
            lost: Bytes::new(self.lost - remembered.lost),
            newly_delivered: Bytes::new(news.bytes),
            newly_lost: Bytes::new(std::mem::take(&mut self.newly_lost)),
            total_delivered: Bytes::new(self.delivered),
            in_flight: left.in_flight,
            is_window_limited: std::mem::take(&mut self.window_limited),
            rtt: left.rtt,
        })
    }
}

/// What an acknowledgement leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    /// The first segment that is not acknowledged in order.
    pub(crate) first: u64,
    /// Bytes in flight.
    pub(crate) in_flight: Bytes,
    /// Least round-trip time of the connection.
    pub(crate) least_rtt: Span,
    /// The round-trip time that this acknowledgement gave.
    pub(crate) rtt: Option<Span>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 1000;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// Sends segment `place` at `ms`, with `before` segments in flight.
    fn send(sampler: &mut Sampler, ms: u64, place: u64, before: u64) {
        sampler.on_sent(at(ms), place, Bytes::new(before * LEN), Bytes::new((before + 1) * LEN));
    }

    /// At `ms`, `segments` arrive up to `place`, which was sent at `sent_ms`.
    fn arrive(sampler: &mut Sampler, ms: u64, segments: u64, place: u64, sent_ms: u64) -> Sample {
        let news = Delivered { bytes: segments * LEN, last_once: Some((at(sent_ms), place)), ..Delivered::default() };
        sampler.on_delivered(at(ms), &news);
        let left = Left { first: place + 1, in_flight: Bytes::ZERO, least_rtt: Span::from_ms(10), rtt: None };
        sampler.sample(at(ms), &news, &left).expect("something has arrived")
    }

    #[test]
    fn a_sample_is_what_arrived_since_the_segment_was_sent_over_the_longer_of_sending_and_arriving() {
        let mut sampler = Sampler::new(Time::ZERO, 1);
        (0..5).for_each(|i| send(&mut sampler, 2 * i, 1 + i, i));
        // Sent over 8 ms, arrived together 20 ms after the first was sent: nothing had arrived before.
        let sample = arrive(&mut sampler, 20, 5, 5, 8);
        assert_eq!((sample.delivered, sample.interval), (Bytes::new(5 * LEN), Some(Span::from_ms(20))));
        assert_eq!(sample.rate(), Some(Rate::from_bps(2_000_000)));
        assert_eq!((sample.prior_delivered, sample.sent_into), (Bytes::ZERO, Bytes::new(5 * LEN)));
        // After that, sending takes 40 ms and the acknowledgements come together.
        send(&mut sampler, 20, 6, 1);
        send(&mut sampler, 60, 7, 1);
        let sample = arrive(&mut sampler, 70, 2, 7, 60);
        assert_eq!((sample.delivered, sample.interval), (Bytes::new(2 * LEN), Some(Span::from_ms(52))));
    }

    #[test]
    fn a_sample_after_a_pause_begins_when_the_pause_ends() {
        let mut sampler = Sampler::new(Time::ZERO, 1);
        send(&mut sampler, 0, 1, 0);
        arrive(&mut sampler, 20, 1, 1, 0);
        send(&mut sampler, 5000, 2, 0);
        assert_eq!(arrive(&mut sampler, 5020, 1, 2, 5000).interval, Some(Span::from_ms(20)));
    }

    #[test]
    fn samples_are_application_limited_until_what_was_in_flight_has_arrived() {
        let mut sampler = Sampler::new(Time::ZERO, 1);
        send(&mut sampler, 0, 1, 0);
        sampler.limit(Bytes::new(LEN));
        send(&mut sampler, 1, 2, 1);
        assert!(!arrive(&mut sampler, 20, 1, 1, 0).is_app_limited, "it was sent before");
        assert!(sampler.is_app_limited());
        send(&mut sampler, 20, 3, 1);
        assert!(arrive(&mut sampler, 21, 1, 2, 1).is_app_limited);
        assert!(!sampler.is_app_limited(), "the gap is through");
        assert!(arrive(&mut sampler, 40, 1, 3, 20).is_app_limited, "it was sent within");
        send(&mut sampler, 40, 4, 0);
        assert!(!arrive(&mut sampler, 60, 1, 4, 40).is_app_limited);
    }

    #[test]
    fn a_segment_that_arrives_too_soon_after_it_was_sent_again_shows_no_rate() {
        let mut sampler = Sampler::new(Time::ZERO, 1);
        send(&mut sampler, 0, 1, 0);
        send(&mut sampler, 15, 1, 0);
        assert_eq!(arrive(&mut sampler, 20, 1, 1, 15).rate(), None);
    }

    #[test]
    fn a_loss_reports_what_was_lost_since_it_was_sent() {
        let mut sampler = Sampler::new(Time::ZERO, 1);
        (0..6).for_each(|i| send(&mut sampler, 0, 1 + i, i));
        let loss = |sampler: &mut Sampler, place| sampler.on_lost(place, LEN as u32).expect("it is known");
        let [first, second, fourth] = [1, 2, 4].map(|place| loss(&mut sampler, place));
        assert_eq!([first, second, fourth].map(|loss| loss.lost.count() / LEN), [1, 2, 3]);
        assert_eq!([first, second, fourth].map(|loss| loss.sent_into.count() / LEN), [1, 2, 4]);
        assert_eq!([first, second, fourth].map(|loss| loss.begins_range), [true, false, true]);
        send(&mut sampler, 30, 1, 3);
        assert_eq!(loss(&mut sampler, 1).lost, Bytes::new(LEN), "it was sent anew since");
        assert_eq!(arrive(&mut sampler, 40, 1, 3, 0).newly_lost, Bytes::new(4 * LEN));
        assert_eq!(sampler.on_lost(2, LEN as u32), None, "it is acknowledged");
    }
}
