//! A batch of replicates on several threads. The result does not depend on their number.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use weir_core::spec::Engine;
use weir_core::units::Time;

use crate::plan::Plan;
use crate::sim::{Counts, Seen, Sim, SimError};
use crate::slotted;
use crate::spill::{Sink, Spill};
use crate::totals::Totals;

/// How far a batch has come, for another thread to see; and the way to end it.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    cancelled: AtomicBool,
    /// What was counted in the first replicate and not yet asked for; none where nobody asks.
    news: Option<Mutex<Vec<Counts>>>,
}

/// Steps that one replicate is counted as.
const STEPS: u64 = 1_000_000;

impl Progress {
    /// Nothing done yet.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// The same, which also notes now and then what the first replicate has counted.
    pub fn with_news() -> Progress {
        Progress { news: Some(Mutex::default()), ..Progress::default() }
    }

    /// What was noted since this was asked last.
    pub fn news(&self) -> Vec<Counts> {
        self.news.as_ref().map_or_else(Vec::new, |news| {
            std::mem::take(&mut *news.lock().expect("no thread panics while it holds the news"))
        })
    }

    fn note(&self, counts: Counts) {
        if let Some(news) = &self.news {
            news.lock().expect("no thread panics while it holds the news").push(counts);
        }
    }

    /// Simulated time of all replicates together, of [`Progress::total`] steps.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Steps of a whole batch.
    pub fn total(replicates: usize) -> u64 {
        replicates as u64 * STEPS
    }

    /// Ends the batch within 65 536 events of each thread.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Runs one replicate per seed on at most `threads` threads; the results stand in the order of the seeds. Threads that are
/// left help single runs where they can: sources of the slotted engine draw ahead.
///
/// # Errors
/// That of the first replicate, in the order of the seeds, that has one; an error ends the batch.
pub fn simulate(plan: &Plan, seeds: &[u64], threads: usize, progress: &Progress) -> Result<Vec<Totals>, SimError> {
    simulate_to(None, plan, seeds, threads, progress)
}

/// The same; where there are many rows of series they leave by the `sink` while the runs go on, and are not in what is returned.
///
/// # Errors
/// As of [`simulate`]; [`SimError::Interrupted`] where the sink said no.
pub fn simulate_to(
    sink: Option<Sink<'_>>,
    plan: &Plan,
    seeds: &[u64],
    threads: usize,
    progress: &Progress,
) -> Result<Vec<Totals>, SimError> {
    let results: Mutex<Vec<Option<Result<Totals, SimError>>>> = Mutex::new(seeds.iter().map(|_| None).collect());
    let next = AtomicUsize::new(0);
    let has_spare = threads >= 2 * seeds.len();
    let work = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(&seed) = seeds.get(place) else { return };
            let spill = Spill::new(sink, place as u32);
            let result = replicate(plan, seed, has_spare, progress, place == 0, spill);
            if result.is_err() {
                progress.cancel();
            }
            results.lock().expect("no thread panics while it holds the results")[place] = Some(result);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.clamp(1, seeds.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let results = results.into_inner().expect("no thread panics while it holds the results");
    let mut results: Vec<_> = results.into_iter().map(|result| result.expect("every seed was taken")).collect();
    // An error makes the others stop: report the cause, not its echo.
    match results.iter().position(|result| matches!(result, Err(error) if *error != SimError::Interrupted)) {
        Some(cause) => results.swap_remove(cause).map(|_| Vec::new()),
        None => results.into_iter().collect(),
    }
}

/// One replicate, from the first event to the last; with a thread to spare, if it can use one.
fn replicate<'s>(
    plan: &'s Plan,
    seed: u64,
    has_spare: bool,
    progress: &Progress,
    notes: bool,
    spill: Spill<'s>,
) -> Result<Totals, SimError> {
    let end = plan.spec().run.duration_ps;
    let mut reported = 0;
    let mut report = |now: Time| {
        let steps = (u128::from(now.ps()) * u128::from(STEPS) / u128::from(end.ps())) as u64;
        progress.done.fetch_add(steps - reported, Ordering::Relaxed);
        reported = steps;
        if progress.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    if report(Time::ZERO).is_break() {
        return Err(SimError::Interrupted);
    }
    let mut next = if notes && progress.news.is_some() { Time::ZERO } else { Time::ZERO + end };
    let ask = |seen: Seen<'_>| {
        if seen.now() >= next {
            next = seen.now() + seen.pause();
            progress.note(seen.counts());
        }
        report(seen.now())
    };
    let totals = match plan.spec().run.engine {
        Engine::Event | Engine::EventTotals => Sim::standard(plan, seed).spilling(spill).run_seen(ask)?,
        Engine::Slotted { .. } => slotted::run(plan, seed, has_spare, spill, ask)?,
    };
    let _ = report(Time::ZERO + end);
    Ok(totals)
}
