//! The receiving end, which is given what arrives and the time: who may send, and what is answered.
//!
//! Until somebody has shown the secret and that he receives at the address that he sends from, each of his datagrams is
//! answered by at most one that is shorter, and only if its tag is right; and no more often than [`GREETINGS_PER_S`]. All
//! that is kept of it is the nonce of a greeting that was answered, of at most [`REMEMBERED`]: a sender draws one for each
//! greeting, so one that comes again was recorded, and costs a look and no answer. Whatever else arrives is counted and
//! forgotten.

mod limits;

mod guest;

mod events;

pub use self::events::{Bounds, Counts, End, Event, Reply};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use weir_core::tcp::{self, Receiver};
use weir_core::units::{Bytes, Span, Time};

use self::guest::Guest;
use self::limits::{Bucket, Remembered};
use super::keys::{Key, Nonce, TAG, random};
use super::wire::{
    Accept, Bye, Challenge, Close, Closed, DATA_HEADER, Data, FAREWELL, GREETING, Hello, Kind, MOST_PAYLOAD, Open,
    Reason, Refuse, session_of,
};
use crate::LiveError;

/// How long a challenge may be answered.
pub const CHALLENGE: Span = Span::from_ms(5_000);
/// Most greetings that are answered, each second and at once.
pub const GREETINGS_PER_S: u64 = 200;
/// How many greetings that were answered are remembered.
pub const REMEMBERED: usize = 16_384;
/// The last word of a session, and its acceptance, are not repeated sooner.
const REPEAT: Span = Span::from_ms(100);
/// A session in which nothing valid arrives ends after this.
pub const SILENCE: Span = Span::from_ms(10_000);
/// How long a session that was closed is remembered, so that its end can be reported again.
const LINGER: Span = Span::from_ms(3_000);
/// What a session may take beyond what was asked for: the repair of the last losses.
const GRACE: Span = Span::from_ms(15_000);
/// What stands before the acknowledgements of a datagram, and behind them.
const AROUND_ACKS: usize = 16 + TAG;

/// The receiving end of all sessions.
#[derive(Debug)]
pub struct Service {
    secret: Key,
    greeting: Key,
    cookies: Key,
    bounds: Bounds,
    guests: BTreeMap<u64, Guest>,
    /// Nonces of sessions that ended, and until when a challenge with them could be answered again.
    spent: VecDeque<(Time, Nonce)>,
    greeted: Remembered,
    bucket: Bucket,
    counts: Counts,
    events: Vec<Event>,
    replies: Vec<Reply>,
    /// What the socket has dropped, and how often its clock was stepped, as reported last.
    drops: u64,
    clock_steps: u64,
}

impl Service {
    /// For senders that hold `secret`.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn new(secret: &Key, bounds: Bounds) -> Result<Service, LiveError> {
        Ok(Service {
            greeting: secret.derive("greeting", &[]),
            secret: secret.clone(),
            cookies: Key::random()?,
            bounds,
            guests: BTreeMap::new(),
            spent: VecDeque::new(),
            greeted: Remembered::default(),
            bucket: Bucket::new(GREETINGS_PER_S),
            counts: Counts::default(),
            events: Vec::new(),
            replies: Vec::new(),
            drops: 0,
            clock_steps: 0,
        })
    }

    /// A datagram that is `whole` bytes long and begins with `front` arrived from `from` at `stamp`; it is `now` now.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn handle(
        &mut self,
        now: Time,
        stamp: Time,
        from: SocketAddr,
        front: &[u8],
        whole: usize,
    ) -> Result<(), LiveError> {
        let is_known = match Kind::of(front) {
            Some(Kind::Data) => self.on_data(now, stamp, from, front, whole),
            Some(Kind::Hello) if whole == GREETING && front.len() == whole => self.on_hello(now, from, front),
            Some(Kind::Open) if whole == GREETING && front.len() == whole => self.on_open(now, from, front)?,
            Some(Kind::Close) if whole == FAREWELL && front.len() == whole => self.on_close(now, from, front),
            _ => false,
        };
        self.counts.strangers += u64::from(!is_known);
        Ok(())
    }

    /// Time has passed, and everything that waited was handled.
    pub fn advance(&mut self, now: Time) {
        while self.spent.front().is_some_and(|&(until, _)| until <= now) {
            self.spent.pop_front();
        }
        let mut over = Vec::new();
        for (&session, guest) in &mut self.guests {
            guest.receiver.handle_timeout(now);
            guest.collect(now);
            if !guest.acks.is_empty() {
                self.replies.push(guest.flush(session));
            }
            let end = match guest.closed {
                Some((at, _)) if now.saturating_since(at) >= LINGER => Some(End::Closed),
                Some(_) => None,
                None if now >= guest.until => Some(End::TooLong),
                None if guest.receiver.delivered() > self.bounds.most => Some(End::TooMuch),
                None if now.saturating_since(guest.heard) >= SILENCE => Some(End::Silent),
                None => None,
            };
            over.extend(end.map(|end| (session, end)));
        }
        for (session, end) in over {
            self.remove(now, session, end);
        }
    }

    /// The receiver ends: everybody is informed.
    pub fn end(&mut self, now: Time) {
        for session in self.guests.keys().copied().collect::<Vec<_>>() {
            self.remove(now, session, End::Ended);
        }
    }

    /// What the socket has dropped so far, and how often the real-time clock was stepped.
    pub fn note_host(&mut self, drops: u64, clock_steps: u64) {
        (self.drops, self.clock_steps) = (drops, clock_steps);
    }

    /// What is to be sent now.
    pub fn take_replies(&mut self) -> Vec<Reply> {
        std::mem::take(&mut self.replies)
    }

    /// What has happened since this was asked last.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether anybody sends.
    pub fn is_busy(&self) -> bool {
        self.guests.values().any(|guest| guest.closed.is_none())
    }

    /// Whether nobody is even remembered.
    pub fn is_empty(&self) -> bool {
        self.guests.is_empty()
    }

    fn on_hello(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> bool {
        let body = &datagram[..GREETING - TAG];
        // Before any work: whoever replays a greeting has it done once.
        if Hello::decode(body).is_some_and(|hello| self.greeted.holds(&hello.nonce)) {
            self.counts.replayed += 1;
            return true;
        }
        let Some(hello) = self.greeting.open(datagram).and_then(Hello::decode) else { return false };
        if !self.bucket.take(now) {
            self.counts.unanswered += 1;
            return true;
        }
        self.greeted.add(hello.nonce);
        let made_ms = ms(now);
        let cookie = self.cookies.tag(&cookie_body(from, &hello.nonce, made_ms));
        let challenge = Challenge { nonce: hello.nonce, made_ms, cookie };
        self.replies.push(Reply { to: from, datagram: challenge.sealed(&self.greeting) });
        true
    }

    fn on_open(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> Result<bool, LiveError> {
        let Some(open) = self.greeting.open(datagram).and_then(Open::decode) else { return Ok(false) };
        let Challenge { nonce, made_ms, cookie } = open.challenge;
        let is_fresh = ms(now).checked_sub(made_ms).is_some_and(|age| Span::from_ms(age) < CHALLENGE);
        if !is_fresh || !self.cookies.made(&cookie_body(from, &nonce, made_ms), &cookie) {
            return Ok(false);
        }
        if let Some(guest) = self.guests.values_mut().find(|guest| guest.nonce == nonce) {
            // The answer may have been lost.
            if guest.may_repeat(now) {
                self.replies.push(Reply { to: from, datagram: guest.accept.clone() });
            }
            return Ok(true);
        }
        if self.spent.iter().any(|(_, spent)| *spent == nonce) {
            return Ok(false);
        }
        let Err(reason) = self.admit(now, from, &open)? else { return Ok(true) };
        if !self.bucket.take(now) {
            self.counts.unanswered += 1;
            return Ok(true);
        }
        self.events.push(Event::Refused { peer: from, reason });
        self.replies.push(Reply { to: from, datagram: Refuse { nonce, reason }.sealed(&self.greeting) });
        Ok(true)
    }

    fn admit(&mut self, now: Time, from: SocketAddr, open: &Open) -> Result<Result<(), Reason>, LiveError> {
        if self.guests.values().filter(|guest| guest.closed.is_none()).count() >= self.bounds.sessions
            || self.guests.len() >= 4 * self.bounds.sessions
        {
            return Ok(Err(Reason::Busy));
        }
        if open.lasts > self.bounds.longest {
            return Ok(Err(Reason::TooLong));
        }
        let Some(config) = receiver_config(open, self.bounds.buffer) else { return Ok(Err(Reason::Unsuitable)) };
        let (nonce, other) = (open.challenge.nonce, random()?);
        let session = u64::from_be_bytes(random()?);
        if self.guests.contains_key(&session) {
            return Ok(Err(Reason::Busy));
        }
        let (up, down) = session_keys(&self.secret, &nonce, &other);
        let accept = Accept { nonce, session, other }.sealed(&self.greeting);
        self.replies.push(Reply { to: from, datagram: accept.clone() });
        self.events.push(Event::Opened { peer: from });
        self.counts.sessions += 1;
        let guest = Guest {
            peer: from,
            nonce,
            up,
            down,
            accept,
            answered: now,
            receiver: Receiver::new(&config),
            acks: Vec::new(),
            acks_bytes: AROUND_ACKS,
            number: 0,
            heard: now,
            until: now + open.lasts + GRACE,
            stamped: None,
            closed: None,
            counted: Closed { session, ..Closed::default() },
        };
        self.guests.insert(session, guest);
        Ok(Ok(()))
    }

    fn on_data(&mut self, now: Time, stamp: Time, from: SocketAddr, front: &[u8], whole: usize) -> bool {
        let session = session_of(front).unwrap_or(0);
        let Some(guest) = self.guests.get_mut(&session).filter(|guest| guest.peer == from) else { return false };
        let Some(data) = front.get(..DATA_HEADER).and_then(|front| Data::open(&guest.up, front, whole)) else {
            return false;
        };
        if guest.closed.is_some() {
            return true;
        }
        guest.heard = now;
        let (first, last) = guest.stamped.unwrap_or((stamp, stamp));
        let stamp = stamp.max(last);
        guest.stamped = Some((first, stamp));
        guest.receiver.handle_segment(stamp, &data.segment);
        if let Some(reply) = guest.collect(stamp).then(|| guest.flush(session)) {
            self.replies.push(reply);
        }
        true
    }

    fn on_close(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> bool {
        let session = session_of(datagram).unwrap_or(0);
        let (drops, clock_steps) = (self.drops, self.clock_steps);
        let Some(guest) = self.guests.get_mut(&session).filter(|guest| guest.peer == from) else { return false };
        if guest.up.open(datagram).and_then(Close::decode).is_none() {
            return false;
        }
        if guest.closed.is_none() {
            guest.counted = guest.counts(drops, clock_steps);
            guest.closed = Some((now, guest.counted.sealed(&guest.down)));
            self.events.push(Event::Ended { peer: from, end: End::Closed, counts: guest.counted });
            guest.answered = now;
        } else if !guest.may_repeat(now) {
            return true;
        }
        let word = guest.closed.iter().map(|(_, word)| Reply { to: from, datagram: word.clone() });
        self.replies.extend(word);
        true
    }

    fn remove(&mut self, now: Time, session: u64, end: End) {
        let Some(guest) = self.guests.remove(&session) else { return };
        self.spent.push_back((now + CHALLENGE, guest.nonce));
        if guest.closed.is_none() {
            let counts = guest.counts(self.drops, self.clock_steps);
            self.events.push(Event::Ended { peer: guest.peer, end, counts });
            self.replies.push(Reply { to: guest.peer, datagram: Bye { session }.sealed(&guest.down) });
        }
    }
}

/// Longest acknowledgement.
const MOST_ACK: usize = 21 + 8 * tcp::MAX_SACKS;

/// The keys of a session: of what the sender sends, and of what the receiver sends.
pub fn session_keys(secret: &Key, nonce: &Nonce, other: &Nonce) -> (Key, Key) {
    let session = secret.derive("session", &[nonce, other]);
    (session.derive("up", &[]), session.derive("down", &[]))
}

/// What the receiver of a session is set to; nothing if that is out of bounds.
fn receiver_config(open: &Open, buffer: Bytes) -> Option<tcp::Config> {
    let is_bounded = open.payload.count() <= MOST_PAYLOAD && open.lasts > Span::ZERO;
    let config = tcp::Config {
        segment_bytes: open.payload,
        receive_buffer_bytes: buffer,
        delayed_ack_segments: open.every,
        delayed_ack_timeout_ps: open.patience,
        arrival_stamps_ps: Some(open.unit),
        ..tcp::Config::default()
    };
    (is_bounded && open.every <= MOST_EVERY && config.check().is_ok()).then_some(config)
}

/// Most segments for one acknowledgement.
const MOST_EVERY: u32 = 64;

/// What a cookie is the tag of.
fn cookie_body(from: SocketAddr, nonce: &Nonce, made_ms: u64) -> Vec<u8> {
    let address = match from.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let parts: [&[u8]; 4] = [&address.octets(), &from.port().to_be_bytes(), nonce, &made_ms.to_be_bytes()];
    parts.concat()
}

fn ms(at: Time) -> u64 {
    at.ps() / Span::from_ms(1).ps()
}

#[cfg(test)]
mod tests;
