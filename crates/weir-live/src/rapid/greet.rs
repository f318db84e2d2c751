//! How a sender begins and ends a session.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use weir_core::tcp::Config;
use weir_core::units::{Span, Time};

use super::keys::{Key, Nonce, random};
use super::service::session_keys;
use super::wire::{Accept, Challenge, Close, Closed, GREETING, Hello, Kind, Open, Reason, Refuse};
use crate::LiveError;
use crate::host::{Clock, socket};

/// How long an answer is awaited before the question is asked again.
const AGAIN: Span = Span::from_ms(300);
/// After so many words that nobody listens it is believed.
const REFUSALS: u32 = 3;
/// How long the last word is awaited.
const FAREWELL_PATIENCE: Span = Span::from_ms(1_500);
/// How long a wait lasts before somebody looks whether to go on.
const GLANCE: Span = Span::from_ms(20);

/// A session that is open.
#[derive(Debug)]
pub struct Session {
    /// Its number.
    pub number: u64,
    /// Of what is sent.
    pub up: Key,
    /// Of what is received.
    pub down: Key,
}

/// Opens a session with `peer` through `socket` within `patience`.
///
/// # Errors
/// Nobody answers, the receiver refuses, or somebody asked to stop.
pub fn open(
    socket: &UdpSocket,
    peer: SocketAddr,
    clock: Clock,
    secret: &Key,
    (config, lasts): (&Config, Span),
    patience: Span,
    cancel: &AtomicBool,
) -> Result<Session, LiveError> {
    let key = secret.derive("greeting", &[]);
    let until = clock.now() + patience;
    let mut line = Line { socket, clock, cancel, until, refused: 0 };
    // Each greeting has a nonce of its own: the receiver answers none twice.
    let drawn: RefCell<Vec<Nonce>> = RefCell::default();
    let hello = || {
        let nonce = random()?;
        drawn.borrow_mut().push(nonce);
        Ok(Hello { nonce }.sealed(&key))
    };
    let challenge = line.ask(hello, |datagram| {
        let challenge = key.open(datagram).and_then(Challenge::decode)?;
        drawn.borrow().contains(&challenge.nonce).then_some(challenge)
    })?;
    let Some(challenge) = challenge else {
        return Err(LiveError::Unanswered { text: line.silence(peer, patience) });
    };
    let nonce = challenge.nonce;
    let wanted = Open {
        challenge,
        lasts,
        payload: config.segment_bytes,
        every: config.delayed_ack_segments,
        patience: config.delayed_ack_timeout_ps,
        unit: config.arrival_stamps_ps.unwrap_or(Span::from_ns(1)),
    };
    let wanted = wanted.sealed(&key);
    let answer = line.ask(
        || Ok(wanted.clone()),
        |datagram| {
            let body = key.open(datagram)?;
            match Kind::of(body)? {
                Kind::Accept => Accept::decode(body).filter(|accept| accept.nonce == nonce).map(Ok),
                Kind::Refuse => {
                    Refuse::decode(body).filter(|refuse| refuse.nonce == nonce).map(|refuse| Err(refuse.reason))
                }
                _ => None,
            }
        },
    )?;
    match answer {
        None => Err(LiveError::Unanswered { text: line.silence(peer, patience) }),
        Some(Ok(Accept { session, other, .. })) => {
            let (up, down) = session_keys(secret, &nonce, &other);
            Ok(Session { number: session, up, down })
        }
        Some(Err(reason)) => {
            let why = match reason {
                Reason::Busy => "it has as many sessions as it takes: try again later",
                Reason::TooLong => "the session would last longer than it allows: ask for less time",
                Reason::Unsuitable => "what is asked for is out of its bounds",
            };
            Err(LiveError::Unanswered { text: format!("{peer} refuses: {why}") })
        }
    }
}

/// Ends `session`; what the receiver counted, if it says so in time.
pub fn close(socket: &UdpSocket, clock: Clock, session: &Session) -> Option<Closed> {
    let never = AtomicBool::new(false);
    let until = clock.now() + FAREWELL_PATIENCE;
    let mut line = Line { socket, clock, cancel: &never, until, refused: 0 };
    let said = Close { session: session.number }.sealed(&session.up);
    let heard = line.ask(
        || Ok(said.clone()),
        |datagram| {
            let closed = session.down.open(datagram).and_then(Closed::decode)?;
            (closed.session == session.number).then_some(closed)
        },
    );
    heard.ok().flatten()
}

/// Asks until there is an answer or no more time.
struct Line<'a> {
    socket: &'a UdpSocket,
    clock: Clock,
    cancel: &'a AtomicBool,
    until: Time,
    /// How often the other host has said that nobody listens there.
    refused: u32,
}

impl Line<'_> {
    /// Asks until somebody answers or the time is over.
    fn ask<T>(
        &mut self,
        mut question: impl FnMut() -> Result<Vec<u8>, LiveError>,
        mut understand: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, LiveError> {
        let mut memory = [0; 2048];
        let mut ask_at = Time::ZERO;
        loop {
            let now = self.clock.now();
            if self.cancel.load(Ordering::Relaxed) {
                return Err(LiveError::Cancelled);
            }
            if now >= self.until || self.refused >= REFUSALS {
                return Ok(None);
            }
            if now >= ask_at {
                ask_at = now + AGAIN;
                match self.socket.send(&question()?) {
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => self.refused += 1,
                    Err(error) if is_passing(&error) => {}
                    Err(error) => return Err(LiveError::system("send a datagram", error)),
                    Ok(_) => {}
                }
            }
            let wait = ask_at.min(self.until).min(now + GLANCE).saturating_since(now);
            socket::await_input(self.socket, wait)?;
            // All that waits, so that nobody's noise keeps the answer back; at most so much before the next look.
            for _ in 0..64 {
                match self.socket.recv(&mut memory) {
                    Ok(length) => {
                        if let Some(answer) = understand(&memory[..length.min(GREETING)]) {
                            return Ok(Some(answer));
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => self.refused += 1,
                    Err(error) if is_passing(&error) => break,
                    Err(error) => return Err(LiveError::system("receive a datagram", error)),
                }
            }
        }
    }

    fn silence(&self, peer: SocketAddr, patience: Span) -> String {
        if self.refused > 0 {
            return format!("{peer}: nobody listens there: start 'weir rapid serve' on that host");
        }
        let seconds = patience.as_secs_f64();
        format!(
            "{peer}: no answer within {seconds:.1} s: does 'weir rapid serve' run there, with the same key, and does \
             UDP get through?"
        )
    }
}

/// Whether it may be better the next time.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused)
        || error.raw_os_error() == Some(libc::ENOBUFS)
        || error.raw_os_error() == Some(libc::EPERM)
}
