//! What is sent, and what comes back.

use std::net::{IpAddr, SocketAddr};

use weir_core::units::{Bytes, Span, Time};

use super::{ROTATION, TAG};
use crate::LiveError;
use crate::host::{Seat, Seated};

/// One probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// When it leaves, since the start.
    pub at: Time,
    /// Time to live, or hop limit.
    pub hops: u8,
    /// Of the IP packet.
    pub size: Bytes,
}

/// To which ports probes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// All to one: a single flow, for which routers choose one path.
    Constant,
    /// Each to the next one.
    Rotating,
}

/// What to send.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whom the probes are for.
    pub destination: IpAddr,
    /// The first destination port; nobody should listen there.
    pub port: u16,
    /// See [`Ports`].
    pub ports: Ports,
    /// Port to send from; 0: any.
    pub source_port: u16,
    /// Marks the probes of this plan.
    pub token: u32,
    /// In the order of their departure.
    pub probes: Vec<Probe>,
    /// How long an answer may take.
    pub timeout: Span,
    /// Where to work.
    pub seat: Seat,
}

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Its time to live ended at a router.
    TimeExceeded,
    /// The destination has nobody at this port.
    PortUnreachable,
    /// Refused on the way, with the code of the ICMP message.
    Unreachable(u8),
    /// Longer than the next link takes, whose MTU this is; 0 when it was not reported.
    TooBig(u32),
    /// Any other message: its type and code.
    Other(u8, u8),
}

/// The answer to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Who answered; none: this host itself.
    pub from: Option<IpAddr>,
    /// What was said.
    pub word: Word,
    /// UDP payload that the answer quoted.
    pub quoted: Bytes,
    /// From when the probe was sent to the arrival of the answer.
    pub rtt: Span,
}

/// What a plan came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where the probes came from.
    pub source: SocketAddr,
    /// When each was sent: handed to the network device as the kernel stamped it or, where it does not say, just
    /// before it was handed to the kernel. None: this host could not.
    pub sent: Vec<Option<Time>>,
    /// How many of these times are the kernel's.
    pub stamped: u64,
    /// The first answer to each.
    pub answers: Vec<Option<Answer>>,
    /// Further answers to probes that had one.
    pub duplicates: u64,
    /// Messages that no probe of this plan asked for, or that do not show which did.
    pub strangers: u64,
    /// Datagrams that came back: somebody listens at the port.
    pub replies: u64,
    /// How far the real-time clock was stepped against the monotonic one meanwhile, in ns.
    pub clock_step_ns: i64,
    /// What the thread was given.
    pub seated: Seated,
    /// How long it was ready and something else had its CPU; nothing where the kernel does not say.
    pub waited: Option<Span>,
}

impl Plan {
    /// Bytes of headers in front of the payload of a probe.
    pub(super) fn headers(&self) -> usize {
        if self.destination.is_ipv4() { 20 + 8 } else { 40 + 8 }
    }

    pub(super) fn check(&self) -> Result<(), LiveError> {
        let least = (self.headers() + TAG) as u64;
        let short = self.probes.iter().find(|probe| probe.size.count() < least || probe.size.count() > 65_535);
        if let Some(probe) = short {
            return Err(LiveError::Plan(format!("a probe has from {least} B to 65535 B (got {})", probe.size)));
        }
        if self.probes.iter().any(|probe| probe.hops == 0) {
            return Err(LiveError::Plan("a probe lives for one hop or more".into()));
        }
        if self.port.checked_add(ROTATION).is_none() {
            return Err(LiveError::Plan(format!(
                "the first port is at most {} (got {})",
                u16::MAX - ROTATION,
                self.port
            )));
        }
        Ok(())
    }
}
