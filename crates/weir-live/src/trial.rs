//! A trial: for each direction a sender and a receiver, all at work together for a while.

use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;

use nix::unistd::gettid;
use weir_core::units::{Bytes, Span, Time};

use crate::LiveError;
use crate::datagram::Header;
use crate::distribution::{Distribution, Percentiles};
use crate::host::{Clock, Reading, Seat, Seated, ThreadTime, socket};
use crate::load::{self, Offered};
use crate::payloads::Payloads;
use crate::shared::{Common, Shared};
use crate::sink::{self, Received};

/// When the outcome of a trial is decided before its end. Losses count together over all directions.
#[derive(Clone, Copy, Debug)]
pub struct StopRule {
    /// Most probes that may be lost.
    pub budget: u64,
    /// After how long a probe that did not arrive is lost and no longer in flight.
    pub flight: Span,
    /// A second budget, for the beginning of the trial alone.
    pub look: Option<Look>,
}

/// A budget for the beginning of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The beginning: all probes that are due before this time from the start.
    pub until: Span,
    /// Most of them that may be lost.
    pub budget: u64,
}

/// One direction of a trial.
#[derive(Clone, Debug)]
pub struct Direction {
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
    /// A number that no other direction of this trial and no trial near it has.
    pub run: u32,
}

/// What a trial is, but for its departures.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its directions, all at work at the same time.
    pub directions: Vec<Direction>,
    /// UDP payloads of the probes of each direction.
    pub payloads: Payloads,
    /// How long the senders may take.
    pub duration: Span,
    /// How long nothing must arrive after a direction's sender has ended.
    pub settle: Span,
    /// How long a device may go on delivering, beyond that and the duration once more, before the trial is given up.
    pub patience: Span,
    /// Memory for probes that wait for a sender's interface.
    pub send_buffer: Bytes,
    /// Memory for probes that wait for a receiver.
    pub receive_buffer: Bytes,
    /// How long before a deadline a sender wakes up to await it by looking at the clock.
    pub spin: Span,
    /// When the outcome is decided.
    pub stop: Option<StopRule>,
    /// Accounts of the kernel to keep as they are before the first departure and after the last.
    pub accounts: Vec<PathBuf>,
}

/// What a trial gave.
#[derive(Clone, Debug)]
pub struct Report {
    /// Of each direction, in the order of the plan.
    pub directions: Vec<DirectionReport>,
    /// One-way delay over all directions: kernel receive stamp minus departure.
    pub delay: Option<Percentiles>,
    /// How much the real-time clock moved against the monotonic one, in ns; the most that any receiver saw.
    pub clock_step_ns: i64,
    /// Whether the stop rule ended the trial.
    pub stopped: bool,
    /// The accounts of the plan, before the first direction's first departure and after its last.
    pub accounts: [Reading; 2],
}

/// What one direction of a trial gave.
#[derive(Clone, Debug)]
pub struct DirectionReport {
    /// Probes of the schedule, as far as it went: to its end, or to where the stop rule ended it.
    pub intended: u64,
    /// Probes that left.
    pub sent: u64,
    /// Distinct probes that arrived.
    pub received: u64,
    /// Probes due before the look of the stop rule that left and did not arrive, for whatever reason.
    pub lost_early: u64,
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
    /// Probes that left more than a millisecond late.
    pub late: u64,
    /// One-way delay: kernel receive stamp minus departure.
    pub delay: Option<Percentiles>,
    /// How often the kernel had no room for a probe.
    pub blocked: u64,
    /// System calls that sent something.
    pub batches: u64,
    /// What the sender was given.
    pub sender: Seated,
    /// What the receiver was given.
    pub receiver: Seated,
    /// How long the sender ran and waited for its CPU while it sent; nothing where the kernel does not say.
    pub sender_time: Option<ThreadTime>,
    /// The same of the receiver, in the same time.
    pub receiver_time: Option<ThreadTime>,
}

/// Most probes that a trial may have: sequence numbers take four bytes.
pub const MOST_PROBES: u64 = 1 << 32;

/// From the moment both threads of a direction are ready to its first departure.
const LEAD: Span = Span::from_ms(5);
/// How much longer than its duration a sender may take: what leaves later counts as unsent.
const GRACE: Span = Span::from_ms(2);

/// Measure one trial. Each direction has departures of its own, which count from the start of the trial, rise, and end.
/// `cancel` ends it early, within about a millisecond.
pub fn run<D>(plan: &Plan, departures: &[D], cancel: &AtomicBool) -> Result<Report, LiveError>
where
    D: Iterator<Item = Time> + Clone + Send + Sync,
{
    let schedules: Vec<Schedule<&D>> = departures.iter().map(|each| schedule(plan, each)).collect();
    check(plan, &schedules)?;
    let clock = Clock::start();
    let common = Common::new(cancel);
    let ends: Vec<Result<(Sending, Receiving), LiveError>> = thread::scope(|scope| {
        let directions: Vec<_> = plan
            .directions
            .iter()
            .zip(&schedules)
            .map(|(direction, schedule)| {
                let common = &common;
                scope.spawn(move || measure(plan, direction, schedule, clock, common))
            })
            .collect();
        let joined = |direction: thread::ScopedJoinHandle<'_, _>| {
            direction.join().unwrap_or(Err(LiveError::Panicked("direction")))
        };
        directions.into_iter().map(joined).collect()
    });
    // A direction that failed cancels the others: its own error says why.
    let failed = |end: &Result<_, LiveError>| matches!(end, Err(error) if !matches!(error, LiveError::Cancelled));
    let (failures, rest): (Vec<_>, Vec<_>) = ends.into_iter().partition(failed);
    let ends = failures.into_iter().chain(rest).collect::<Result<Vec<_>, _>>()?;
    Ok(report(ends, common.stopped()))
}

/// The departures of a direction, and how many they are.
struct Schedule<D> {
    departures: D,
    count: u64,
    /// How many are due before the look of the stop rule.
    before_look: u64,
}

fn schedule<'a, D: Iterator<Item = Time> + Clone>(plan: &Plan, departures: &'a D) -> Schedule<&'a D> {
    let enough = usize::try_from(MOST_PROBES).unwrap_or(usize::MAX).saturating_add(1);
    let until = plan.stop.and_then(|stop| stop.look).map(|look| Time::ZERO + look.until);
    let before_look = until.map_or(0, |until| departures.clone().take_while(|&at| at < until).count() as u64);
    Schedule { departures, count: departures.clone().take(enough).count() as u64, before_look }
}

fn check<D>(plan: &Plan, schedules: &[Schedule<D>]) -> Result<(), LiveError> {
    let smallest = plan.payloads.smallest();
    if smallest.count() < Header::LEN as u64 {
        let text = format!("a payload of {smallest} holds no header of {} B", Header::LEN);
        return Err(LiveError::Plan(text));
    }
    if plan.directions.is_empty() || plan.directions.len() != schedules.len() {
        let text = format!("{} directions have {} schedules", plan.directions.len(), schedules.len());
        return Err(LiveError::Plan(text));
    }
    if schedules.iter().any(|schedule| schedule.count == 0) {
        return Err(LiveError::Plan("the trial has no departure".into()));
    }
    if schedules.iter().any(|schedule| schedule.count > MOST_PROBES) {
        return Err(LiveError::Plan(format!("a trial has at most {MOST_PROBES} probes")));
    }
    Ok(())
}

struct Sending {
    start: Time,
    offered: Offered,
    seated: Seated,
    accounts: [Reading; 2],
    sender_time: Option<ThreadTime>,
    receiver_time: Option<ThreadTime>,
}

struct Receiving {
    received: Received,
    seated: Seated,
}

/// Reports the receiver that the sender has ended, however it did.
struct Ending<'a>(&'a Shared<'a>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Both threads of a direction.
fn measure<D>(
    plan: &Plan,
    direction: &Direction,
    schedule: &Schedule<&D>,
    clock: Clock,
    common: &Common<'_>,
) -> Result<(Sending, Receiving), LiveError>
where
    D: Iterator<Item = Time> + Clone + Send + Sync,
{
    let shared = &Shared::new(common);
    let (ready, receiver_ready) = mpsc::channel();
    let ends = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(plan, direction, schedule, clock, shared, ready));
        // A receiver that failed drops its end of the channel; its own error says why.
        let departures = schedule.departures.clone();
        let sender = receiver_ready
            .recv()
            .ok()
            .map(|receiver| scope.spawn(move || send(plan, direction, departures, clock, receiver, shared)));
        let sender = sender.map(|thread| thread.join().unwrap_or(Err(LiveError::Panicked("sender"))));
        let received = receiver.join().unwrap_or(Err(LiveError::Panicked("receiver")));
        match (sender, received) {
            (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            (Some(Ok(sending)), Ok(receiving)) => Ok((sending, receiving)),
            (None, Ok(_)) => Err(LiveError::Panicked("receiver")),
        }
    });
    if ends.is_err() {
        common.give_up();
    }
    ends
}

fn send(
    plan: &Plan,
    direction: &Direction,
    departures: impl Iterator<Item = Time>,
    clock: Clock,
    receiver: u32,
    shared: &Shared<'_>,
) -> Result<Sending, LiveError> {
    let _ending = Ending(shared);
    let seated = Seat::take(&direction.sender)?;
    let socket = socket::sending(direction.source, direction.destination, plan.send_buffer)?;
    let before = (Reading::of(&plan.accounts, clock.now()), ThreadTime::here(), ThreadTime::of(receiver));
    let start = clock.now() + LEAD;
    let give_up = start + plan.duration + GRACE.max(Span::from_ps(plan.duration.ps() / 400));
    let orders = load::Orders { run: direction.run, payloads: &plan.payloads, start, give_up, spin: plan.spin };
    let offered = load::offer(&socket, clock, orders, departures, shared)?;
    let since = |now: Option<ThreadTime>, then: Option<ThreadTime>| Some(now? - then?);
    Ok(Sending {
        start,
        offered,
        seated,
        sender_time: since(ThreadTime::here(), before.1),
        receiver_time: since(ThreadTime::of(receiver), before.2),
        accounts: [before.0, Reading::of(&plan.accounts, clock.now())],
    })
}

fn receive<D>(
    plan: &Plan,
    direction: &Direction,
    schedule: &Schedule<D>,
    clock: Clock,
    shared: &Shared<'_>,
    ready: mpsc::Sender<u32>,
) -> Result<Receiving, LiveError> {
    let seated = Seat::take(&direction.receiver)?;
    let socket = socket::receiving(direction.listen, plan.receive_buffer)?;
    let give_up = clock.now() + LEAD + plan.duration * 2 + plan.settle + plan.patience;
    let orders = sink::Orders {
        run: direction.run,
        expected: schedule.count,
        before_look: schedule.before_look,
        settle: plan.settle,
        give_up,
        stop: plan.stop,
    };
    ready.send(gettid().as_raw().unsigned_abs()).map_err(|_| LiveError::Cancelled)?;
    let received = sink::receive(&socket, clock, orders, shared)?;
    Ok(Receiving { received, seated })
}

fn report(ends: Vec<(Sending, Receiving)>, stopped: bool) -> Report {
    let mut delay = Distribution::new();
    let mut clock_step_ns = 0_i64;
    for (_, Receiving { received, .. }) in &ends {
        delay.add(&received.delay);
        if received.clock_step_ns.abs() > clock_step_ns.abs() {
            clock_step_ns = received.clock_step_ns;
        }
    }
    let accounts = ends[0].0.accounts.clone();
    let directions = ends.into_iter().map(|(sending, receiving)| direction_report(sending, receiving)).collect();
    Report { directions, delay: delay.percentiles(), clock_step_ns, stopped, accounts }
}

fn direction_report(sending: Sending, receiving: Receiving) -> DirectionReport {
    let Sending { start, offered, seated: sender, sender_time, receiver_time, .. } = sending;
    let Receiving { received, seated: receiver } = receiving;
    DirectionReport {
        intended: offered.sent + offered.unsent,
        sent: offered.sent,
        received: received.tally.distinct(),
        lost_early: received.lost_early,
        duplicated: received.tally.duplicated(),
        reordered: received.tally.reordered(),
        strangers: received.strangers + received.tally.beyond(),
        receiver_drops: received.drops,
        sending: offered.last.map_or(Span::ZERO, |last| last.saturating_since(start)),
        lateness: offered.lateness.percentiles(),
        late: offered.late(),
        delay: received.delay.percentiles(),
        blocked: offered.blocked,
        batches: offered.batches,
        sender,
        receiver,
        sender_time,
        receiver_time,
    }
}
