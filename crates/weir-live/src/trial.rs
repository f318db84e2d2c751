//! A trial: a sender and a receiver at work together for a while.

use std::net::SocketAddrV4;
use std::sync::atomic::AtomicBool;

use weir_core::units::{Bytes, Span, Time};

use crate::LiveError;
use crate::distribution::Percentiles;
use crate::host::{Seat, Seated};

/// When the outcome of a trial is decided before its end.
#[derive(Clone, Copy, Debug)]
pub struct StopRule {
    /// Most probes that may be lost.
    pub budget: u64,
    /// After how long a probe that did not arrive is lost and no longer in flight.
    pub flight: Span,
}

/// What a trial is, but for its departures.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the sender works.
    pub sender: Seat,
    /// Where the receiver works.
    pub receiver: Seat,
    /// Address that probes come from.
    pub source: SocketAddrV4,
    /// Address that probes are sent to.
    pub destination: SocketAddrV4,
    /// Address that the receiver listens at; another one than `destination` where the device translates addresses.
    pub listen: SocketAddrV4,
    /// UDP payload of a probe.
    pub payload: Bytes,
    /// How long the sender may take.
    pub duration: Span,
    /// How long nothing must arrive after the sender has ended.
    pub settle: Span,
    /// How long a device may go on delivering, beyond that and the duration once more, before the trial is given up.
    pub patience: Span,
    /// Memory for probes that wait for the sender's interface.
    pub send_buffer: Bytes,
    /// Memory for probes that wait for the receiver.
    pub receive_buffer: Bytes,
    /// How long before a deadline the sender wakes up to await it by looking at the clock.
    pub spin: Span,
    /// A number that no other trial near it has.
    pub run: u32,
    /// When the outcome is decided.
    pub stop: Option<StopRule>,
}

/// What a trial gave.
#[derive(Clone, Debug)]
pub struct Report {
    /// Probes of the schedule, as far as it went: to its end, or to where the stop rule ended it.
    pub intended: u64,
    /// Probes that left.
    pub sent: u64,
    /// Distinct probes that arrived.
    pub received: u64,
    /// Further copies.
    pub duplicated: u64,
    /// Probes overtaken by later ones (RFC 4737).
    pub reordered: u64,
    /// Datagrams that belong to no or another trial.
    pub strangers: u64,
    /// Probes that the receiver's own socket dropped.
    pub receiver_drops: u64,
    /// From the start of the schedule to the last departure.
    pub sending: Span,
    /// Departure minus time due.
    pub lateness: Option<Percentiles>,
    /// One-way delay: kernel receive stamp minus departure.
    pub delay: Option<Percentiles>,
    /// How often the kernel had no room for a probe.
    pub blocked: u64,
    /// System calls that sent something.
    pub batches: u64,
    /// How much the real-time clock moved against the monotonic one, in ns.
    pub clock_step_ns: i64,
    /// Whether the stop rule ended the trial.
    pub stopped: bool,
    /// What the sender was given.
    pub sender: Seated,
    /// What the receiver was given.
    pub receiver: Seated,
}

/// Most probes that a trial may have: sequence numbers take four bytes.
pub const MOST_PROBES: u64 = 1 << 32;

/// Measure one trial of `departures`, which count from the start of the trial, rise, and end. `cancel` ends it early,
/// within about a millisecond.
#[cfg(target_os = "linux")]
pub fn run<D>(plan: &Plan, departures: D, cancel: &AtomicBool) -> Result<Report, LiveError>
where
    D: Iterator<Item = Time> + Clone + Send,
{
    linux::run(plan, departures, cancel)
}

/// Answers [`LiveError::NeedsLinux`].
#[cfg(not(target_os = "linux"))]
pub fn run<D>(_plan: &Plan, _departures: D, _cancel: &AtomicBool) -> Result<Report, LiveError>
where
    D: Iterator<Item = Time> + Clone + Send,
{
    Err(LiveError::NeedsLinux { what: "a live trial" })
}

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;
    use std::thread;

    use weir_core::units::{Span, Time};

    use super::{MOST_PROBES, Plan, Report};
    use crate::LiveError;
    use crate::datagram::Header;
    use crate::host::{Clock, Seat, Seated, socket};
    use crate::load::{self, Offered};
    use crate::shared::Shared;
    use crate::sink::{self, Received};

    /// From the moment both threads are ready to the first departure.
    const LEAD: Span = Span::from_ms(5);
    /// How much longer than its duration a sender may take: what leaves later counts as unsent.
    const GRACE: Span = Span::from_ms(2);

    pub(super) fn run<D>(plan: &Plan, departures: D, cancel: &AtomicBool) -> Result<Report, LiveError>
    where
        D: Iterator<Item = Time> + Clone + Send,
    {
        let enough = usize::try_from(MOST_PROBES).unwrap_or(usize::MAX).saturating_add(1);
        let intended = departures.clone().take(enough).count() as u64;
        check(plan, intended)?;
        let clock = Clock::start();
        let shared = Shared::new(cancel);
        let (ready, receiver_ready) = mpsc::channel();
        thread::scope(|scope| {
            let receiver = scope.spawn(|| receive(plan, intended, clock, &shared, ready));
            // A receiver that failed drops its end of the channel; its own error says why.
            let sender = receiver_ready.recv().is_ok().then(|| scope.spawn(|| send(plan, departures, clock, &shared)));
            let sender = sender.map(|thread| thread.join().unwrap_or(Err(LiveError::Panicked("sender"))));
            let received = receiver.join().unwrap_or(Err(LiveError::Panicked("receiver")));
            match (sender, received) {
                (Some(Err(error)), _) | (_, Err(error)) => Err(error),
                (Some(Ok(offered)), Ok(received)) => Ok(report(offered, received, &shared)),
                (None, Ok(_)) => Err(LiveError::Panicked("receiver")),
            }
        })
    }

    fn check(plan: &Plan, intended: u64) -> Result<(), LiveError> {
        if plan.payload.count() < Header::LEN as u64 {
            let text = format!("a payload of {} holds no header of {} B", plan.payload, Header::LEN);
            return Err(LiveError::Plan(text));
        }
        if intended == 0 {
            return Err(LiveError::Plan("the trial has no departure".into()));
        }
        if intended > MOST_PROBES {
            return Err(LiveError::Plan(format!("a trial has at most {MOST_PROBES} probes")));
        }
        Ok(())
    }

    struct Sending {
        start: Time,
        offered: Offered,
        seated: Seated,
    }

    struct Receiving {
        received: Received,
        seated: Seated,
    }

    /// Tells the receiver that the sender has ended, however it did.
    struct Ending<'a>(&'a Shared<'a>);

    impl Drop for Ending<'_> {
        fn drop(&mut self) {
            self.0.end();
        }
    }

    fn send(
        plan: &Plan,
        departures: impl Iterator<Item = Time>,
        clock: Clock,
        shared: &Shared<'_>,
    ) -> Result<Sending, LiveError> {
        let _ending = Ending(shared);
        let seated = Seat::take(&plan.sender)?;
        let socket = socket::sending(plan.source, plan.destination, plan.send_buffer)?;
        let start = clock.now() + LEAD;
        let give_up = start + plan.duration + GRACE.max(Span::from_ps(plan.duration.ps() / 400));
        let orders = load::Orders { run: plan.run, payload: plan.payload, start, give_up, spin: plan.spin };
        let offered = load::offer(&socket, clock, orders, departures, shared)?;
        Ok(Sending { start, offered, seated })
    }

    fn receive(
        plan: &Plan,
        intended: u64,
        clock: Clock,
        shared: &Shared<'_>,
        ready: mpsc::Sender<()>,
    ) -> Result<Receiving, LiveError> {
        let seated = Seat::take(&plan.receiver)?;
        let socket = socket::receiving(plan.listen, plan.receive_buffer)?;
        let give_up = clock.now() + LEAD + plan.duration * 2 + plan.settle + plan.patience;
        let orders = sink::Orders { run: plan.run, expected: intended, settle: plan.settle, give_up, stop: plan.stop };
        ready.send(()).map_err(|_| LiveError::Cancelled)?;
        let received = sink::receive(&socket, clock, orders, shared)?;
        Ok(Receiving { received, seated })
    }

    fn report(sending: Sending, receiving: Receiving, shared: &Shared<'_>) -> Report {
        let Sending { start, offered, seated: sender } = sending;
        let Receiving { received, seated: receiver } = receiving;
        Report {
            intended: offered.sent + offered.unsent,
            sent: offered.sent,
            received: received.tally.distinct(),
            duplicated: received.tally.duplicated(),
            reordered: received.tally.reordered(),
            strangers: received.strangers + received.tally.beyond(),
            receiver_drops: received.drops,
            sending: offered.last.map_or(Span::ZERO, |last| last.saturating_since(start)),
            lateness: offered.lateness.percentiles(),
            delay: received.delay.percentiles(),
            blocked: offered.blocked,
            batches: offered.batches,
            clock_step_ns: received.clock_step_ns,
            stopped: shared.stopped(),
            sender,
            receiver,
        }
    }
}
