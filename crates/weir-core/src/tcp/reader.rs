//! An application that reads more slowly than data may come, and the window that it leaves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{SpecError, refuse};
use crate::units::{Rate, Span, Time};

/// How the application at the receiver reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Data, without headers, as a steady stream.
    pub rate_bps: Rate,
    /// Times in which it does not read, one after the other: from, until.
    pub pauses_ps: Vec<(Time, Time)>,
}

impl Reading {
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        refuse!(self.rate_bps.bps() == 0, "/rate_bps", "a rate above 0 (got 0)");
        let mut last = Time::ZERO;
        for (place, &(from, until)) in self.pauses_ps.iter().enumerate() {
            if from < last || until <= from {
                let message = format!("pauses in order, each with an end behind its start (got {from} to {until})");
                return Err(SpecError::new(format!("/pauses_ps/{place}"), message));
            }
            last = until;
        }
        Ok(())
    }
}

/// What lies unread in the buffer of a receiver, and how much more it has allowed the sender to send.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    reading: Reading,
    buffer: u64,
    /// The window opens by so much at least.
    step: u64,
    scale: u8,
    unread: u64,
    /// Of the next byte: bits times 10^12.
    begun: u128,
    at: Time,
    /// The number up to which the sender may send, as advertised.
    pub(crate) advertised: u64,
    /// When the window can be opened for a sender that waits for it.
    pub(crate) opens_at: Time,
}

const BYTE: u128 = 8 * 1_000_000_000_000;

impl Reader {
    /// Of a buffer of `buffer` bytes, of which windows in units of 2^`scale` are advertised to a sender of full segments of `segment`.
    ///
    /// Source: RFC 9293, 3.8.6.2.2, with Fr = 1/2.
    pub(crate) fn new(reading: &Reading, buffer: u64, scale: u8, segment: u64) -> Reader {
        Reader {
            reading: reading.clone(),
            buffer,
            step: (buffer / 2).min(segment).max(1),
            scale,
            unread: 0,
            begun: 0,
            at: Time::ZERO,
            advertised: 0,
            opens_at: Time::NEVER,
        }
    }

    /// `bytes` are ready to be read.
    pub(crate) fn add(&mut self, now: Time, bytes: u64) {
        self.read(now);
        self.unread += bytes;
    }

    /// The window to advertise with `next` as the next number that is expected, in units of the scale.
    pub(crate) fn window(&mut self, now: Time, next: u64) -> u16 {
        self.read(now);
        let edge = next + (((self.buffer - self.unread) >> self.scale) << self.scale);
        if edge >= self.advertised + self.step {
            self.advertised = edge;
        }
        ((self.advertised.max(next) - next) >> self.scale).min(65_535) as u16
    }

    /// When a window in which no full `segment` has room can be opened, with `next` as the next number that is expected.
    pub(crate) fn plan(&mut self, now: Time, next: u64, segment: u64) {
        self.read(now);
        self.opens_at = Time::NEVER;
        // Where less than a step of the buffer was not advertised, reading does not help.
        let free = (self.advertised + self.step).saturating_sub(next).next_multiple_of(1 << self.scale);
        if self.advertised >= next + segment || free > self.buffer {
            return;
        }
        let more = (free + self.unread).saturating_sub(self.buffer);
        self.opens_at = self.has_read(more).max(now);
    }

    fn read(&mut self, now: Time) {
        self.begun += u128::from(self.awake(now).ps()) * u128::from(self.reading.rate_bps.bps());
        self.at = now;
        let read = u64::try_from(self.begun / BYTE).unwrap_or(u64::MAX).min(self.unread);
        self.unread -= read;
        self.begun = if self.unread == 0 { 0 } else { self.begun - u128::from(read) * BYTE };
    }

    /// The time until `now` in which it does not pause.
    fn awake(&self, now: Time) -> Span {
        let whole = now.saturating_since(self.at);
        let paused =
            self.reading.pauses_ps.iter().map(|&(from, until)| until.min(now).saturating_since(from.max(self.at)));
        Span::from_ps(whole.ps() - paused.map(Span::ps).sum::<u64>())
    }

    /// When `bytes` more are read, if so many wait.
    fn has_read(&self, bytes: u64) -> Time {
        let bits = (u128::from(bytes) * BYTE).saturating_sub(self.begun);
        let takes = bits.div_ceil(u128::from(self.reading.rate_bps.bps()));
        let Ok(takes) = u64::try_from(takes) else { return Time::NEVER };
        let mut end = self.at + Span::from_ps(takes);
        for &(from, until) in self.reading.pauses_ps.iter().filter(|pause| pause.1 > self.at) {
            if from >= end {
                break;
            }
            end += until.saturating_since(from.max(self.at));
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// 1000 B in a ms, not between 10 and 15 ms.
    fn reader(buffer: u64, scale: u8) -> Reader {
        let reading = Reading { rate_bps: Rate::from_bps(8_000_000), pauses_ps: vec![(ms(10), ms(15))] };
        Reader::new(&reading, buffer, scale, 1000)
    }

    #[test]
    fn what_was_read_is_what_the_rate_allows_outside_of_pauses() {
        let mut reader = reader(100_000, 0);
        reader.add(ms(1), 20_000);
        for (at, unread) in [(4, 17_000), (10, 11_000), (12, 11_000), (15, 11_000), (20, 6_000), (30, 0)] {
            reader.read(ms(at));
            assert_eq!(reader.unread, unread, "{at} ms");
        }
        reader.add(ms(40), 1_000);
        assert_eq!(reader.unread, 1_000, "what was not there could not be read in advance");
    }

    #[test]
    fn a_closed_window_opens_when_a_segment_has_room_and_a_pause_is_over() {
        let mut reader = reader(4_000, 0);
        assert_eq!(reader.window(ms(0), 1), 4_000);
        reader.add(ms(8), 4_000);
        assert_eq!(reader.window(ms(8), 4_001), 0);
        reader.plan(ms(8), 4_001, 1000);
        assert_eq!(reader.opens_at, ms(9));
        // Half a segment more is no reason to move.
        assert_eq!(reader.window(ms(8) + Span::from_us(500), 4_001), 0);
        assert_eq!(reader.window(ms(9), 4_001), 1_000);
        reader.add(ms(9), 1_000);
        assert_eq!(reader.window(ms(9), 5_001), 0);
        reader.plan(ms(9) + Span::from_us(500), 5_001, 1000);
        assert_eq!(reader.opens_at, ms(10));
        reader.add(ms(10), 0);
        assert_eq!(reader.window(ms(10), 5_001), 1_000);
        reader.add(ms(10), 1_000);
        reader.plan(ms(10), 6_001, 1000);
        assert_eq!(reader.opens_at, ms(16), "after the pause");
    }

    #[test]
    fn a_window_of_more_than_half_of_a_small_buffer_waits_for_nothing() {
        let mut reader = reader(1_000, 0);
        reader.add(ms(0), 700);
        assert_eq!(reader.window(ms(1), 701), 1_000);
        reader.add(ms(1), 300);
        assert_eq!(reader.window(ms(1), 1_001), 700);
        reader.plan(ms(1), 1_001, 1_000);
        assert_eq!(reader.opens_at, Time::NEVER);
    }

    #[test]
    fn an_edge_that_was_advertised_stays_where_windows_are_in_coarse_units() {
        let mut reader = reader(100_000, 7);
        let mut edge = 0;
        for step in 0..200_u64 {
            let next = 1 + step * 700;
            let now = Time::ZERO + Span::from_us(step * 650);
            let window = u64::from(reader.window(now, next)) << 7;
            assert!(next + window <= reader.advertised && reader.advertised >= edge);
            assert!(reader.advertised <= next + 100_000);
            edge = reader.advertised;
            reader.add(now, 700.min(edge - next));
        }
    }
}
