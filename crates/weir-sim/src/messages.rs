//! Messages that come and go: one agent has all of them. What a message needs is made when it comes and given back when its sender knows
//! that it has arrived; of messages that are over, a row is kept.

mod beginning;
mod empty;
mod groups;

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::rc::Rc;

use weir_core::messages::{Events, Message};
use weir_core::rng::Seed;
use weir_core::spec::messages::{Arrivals, Messages as Spec};
use weir_core::units::{Bytes, Time};

use self::groups::{Ends, Group, Slot};
use crate::agent::Agent;
use crate::bulk::Bulk;
use crate::chain::{Chain, NO_TASK};
use crate::fabric::Fabric;
use crate::frames::Received;
use crate::plan::Plan;
use crate::rdma::{Adapters, Due, Wish};
use crate::timer::{Alarm, Timer};
use crate::totals::{MessageTotals, Totals};

/// Entries of `due` that are for the adapter of a host, not for an end.
const ADAPTER: u32 = 1 << 31;

/// All messages of a scenario.
#[derive(Debug)]
pub struct Messages {
    seed: Seed,
    /// Of the hashes of connections: in another run others share a way.
    salt: u64,
    groups: Vec<Group>,
    /// Connections, by number: the sender is the end twice that, the receiver the next.
    slots: Vec<Slot>,
    /// Those whose messages are over; frames of them may still be under way.
    idle: VecDeque<u32>,
    timers: Vec<Timer>,
    /// Timers of ends.
    due: BinaryHeap<Reverse<(Time, u32)>>,
    /// Sources of messages, each with its next event.
    coming: BinaryHeap<Reverse<(Time, u32)>>,
    sources: Vec<Source>,
    /// Tasks that wait for nothing but their delay: when they begin, their group, their place.
    ready: BinaryHeap<Reverse<(Time, u32, u32)>>,
    /// Messages of an event that are about to begin.
    begun: Vec<Message>,
    /// What is still to arrive of those without connections.
    bulk: Rc<RefCell<Bulk>>,
    /// Of hosts that send or receive numbered packets.
    adapters: Adapters,
}

#[derive(Debug)]
struct Source {
    group: u32,
    /// Place in its list.
    place: u32,
    /// None of messages that are listed: `place` is the next one.
    events: Option<Events>,
}

/// What an end is told.
#[derive(Clone, Copy, Debug)]
enum Told {
    Begin,
    Timer,
    Frame(Received),
}

impl Messages {
    /// The messages of `plan`, in the run with `seed`; none if it has none.
    pub(crate) fn new(plan: &Plan, seed: Seed) -> Option<Messages> {
        let mut messages = Messages {
            seed,
            salt: seed.stream("messages/ways").next_u64(),
            groups: Vec::new(),
            slots: Vec::new(),
            idle: VecDeque::new(),
            timers: Vec::new(),
            due: BinaryHeap::new(),
            coming: BinaryHeap::new(),
            sources: Vec::new(),
            ready: BinaryHeap::new(),
            begun: Vec::new(),
            bulk: Rc::default(),
            adapters: Adapters::default(),
        };
        for (traffic, flow, spec) in plan.messages() {
            let group = messages.groups.len() as u32;
            messages.groups.push(Group {
                traffic,
                flow,
                pairs: if spec.has_ends() { BTreeMap::new() } else { spec.pairs().into_iter().zip(flow..).collect() },
                totals: MessageTotals { traffic, stride: 1, ..MessageTotals::default() },
                rows: Vec::new(),
                taken: [0; 65],
                most_rows: usize::try_from(spec.rows).unwrap_or(usize::MAX),
                live: 0,
                chain: Chain::of(&spec.arrivals),
            });
            let mut add = |place, events: Option<Events>, first: Time| {
                if first < Time::NEVER {
                    messages.coming.push(Reverse((first, messages.sources.len() as u32)));
                    messages.sources.push(Source { group, place, events });
                }
            };
            match &spec.arrivals {
                Arrivals::Drawn { sources, .. } => {
                    let name = &plan.spec().traffic[traffic as usize].name;
                    for (place, source) in (0..).zip(sources) {
                        let events = Events::new(source, seed.stream(&format!("messages/{name}/{place}")));
                        let first = events.peek();
                        add(place, Some(events), first);
                    }
                }
                Arrivals::Listed { list } => add(0, None, list.first().map_or(Time::NEVER, |first| first.0)),
                Arrivals::Chained { start_ps, tasks, .. } => messages.ready.extend(
                    (0..)
                        .zip(tasks)
                        .filter(|(_, task)| task.4.is_empty())
                        .map(|(place, task)| Reverse((*start_ps + task.3, group, place))),
                ),
            }
        }
        (!messages.groups.is_empty()).then_some(messages)
    }

    /// The messages of the next event of source `place` come.
    fn come(&mut self, fabric: &mut Fabric<'_>, place: u32) {
        let now = fabric.now();
        self.end_gathered(fabric);
        let source = &mut self.sources[place as usize];
        let group = source.group;
        let spec = messages_of(fabric.plan, self.groups[group as usize].traffic);
        let next = match (&spec.arrivals, &mut source.events) {
            (Arrivals::Drawn { hosts, sources, sizes }, Some(events)) => {
                events.draw(&sources[source.place as usize], hosts, sizes, |message| self.begun.push(message));
                events.peek()
            }
            (Arrivals::Listed { list }, _) => {
                let (_, from, to, bytes) = list[source.place as usize];
                self.begun.push(Message { from, to, bytes });
                source.place += 1;
                list.get(source.place as usize).map_or(Time::NEVER, |next| next.0)
            }
            _ => Time::NEVER,
        };
        if next < Time::NEVER {
            self.coming.push(Reverse((next, place)));
        }
        let begun = std::mem::take(&mut self.begun);
        for &message in &begun {
            self.begin(fabric, now, group, spec, message, NO_TASK);
        }
        self.begun = begun;
        self.begun.clear();
    }

    /// A task that waited for others begins.
    fn begin_task(&mut self, fabric: &mut Fabric<'_>, group: u32, task: u32) {
        let spec = messages_of(fabric.plan, self.groups[group as usize].traffic);
        let Arrivals::Chained { tasks, .. } = &spec.arrivals else { return };
        let (from, to, bytes, ..) = tasks[task as usize];
        if from == to {
            return self.end_task(fabric, group, task, fabric.now());
        }
        if let Some(chain) = &mut self.groups[group as usize].chain {
            chain.begin(task, fabric.now());
        }
        self.begin(fabric, fabric.now(), group, spec, Message { from, to, bytes }, task);
    }

    fn end_gathered(&mut self, fabric: &Fabric<'_>) {
        for (group, task, at) in self.gather() {
            self.end_task(fabric, group, task, at);
        }
    }

    /// A task is over: those that waited for it alone are ready.
    fn end_task(&mut self, fabric: &Fabric<'_>, group: u32, task: u32, now: Time) {
        let Group { chain: Some(chain), traffic, .. } = &mut self.groups[group as usize] else { return };
        let Arrivals::Chained { tasks, .. } = &messages_of(fabric.plan, *traffic).arrivals else { return };
        let ready = &mut self.ready;
        chain.end(task, now, tasks[task as usize].2, |next| {
            ready.push(Reverse((now + tasks[next as usize].3, group, next)));
        });
    }

    /// Messages without connections that are over by now; returns the tasks that they were: group, place, time.
    fn gather(&mut self) -> Vec<(u32, u32, Time)> {
        let (arrived, lost) = self.bulk.borrow_mut().take();
        let mut tasks = Vec::new();
        for (place, at) in arrived {
            let slot = &mut self.slots[place as usize];
            slot.row.delivered = Some(at);
            if slot.task != NO_TASK {
                tasks.push((slot.group, slot.task, at));
            }
            self.finish(place);
        }
        lost.into_iter().for_each(|place| self.finish(place));
        tasks
    }

    /// An end acts; its connection may be over then.
    #[inline]
    fn act(&mut self, fabric: &mut Fabric<'_>, end: u32, told: Told) {
        let slot = &mut self.slots[end as usize / 2];
        let Some(ends) = &mut slot.ends else { return };
        fabric.speak(end / 2);
        let sends = end.is_multiple_of(2);
        let bytes = slot.row.bytes;
        let (next, is_over, has_all, wish) = match ends {
            Ends::Tcp(ends) => {
                let next = match (told, sends) {
                    (Told::Begin, _) => ends.0.begin(fabric),
                    (Told::Timer, true) => ends.0.on_timer(fabric),
                    (Told::Frame(frame), true) => ends.0.on_frame(fabric, frame),
                    (Told::Timer, false) => ends.1.on_timer(fabric),
                    (Told::Frame(frame), false) => ends.1.on_frame(fabric, frame),
                };
                if sends && slot.row.acknowledged.is_none() && ends.0.acked() >= bytes {
                    slot.row.acknowledged = Some(fabric.now());
                }
                (next, sends && ends.0.is_over(), ends.1.delivered() >= bytes, Wish::Nothing)
            }
            Ends::Rdma(ends) => {
                let adaption = if sends { None } else { self.adapters.adaption(slot.row.to, ends) };
                ends.act(fabric, sends, if let Told::Frame(frame) = told { Some(frame) } else { None }, adaption);
                let wish = ends.wish(fabric.now(), sends);
                let next = if sends { ends.next() } else { Time::NEVER };
                (next, sends && ends.is_over(), ends.has_all(), wish)
            }
        };
        let host = if sends { slot.row.from } else { slot.row.to };
        if has_all {
            slot.row.delivered.get_or_insert(fabric.now());
        }
        let task = if has_all { std::mem::replace(&mut slot.task, NO_TASK) } else { NO_TASK };
        let group = slot.group;
        self.set_timer(end, next);
        if task != NO_TASK {
            self.end_task(fabric, group, task, fabric.now());
        }
        if is_over {
            self.finish(end / 2);
        }
        if wish != Wish::Nothing {
            self.adapters.enter(host, end / 2, wish);
            self.serve(fabric, host);
        }
    }

    fn set_timer(&mut self, end: u32, next: Time) {
        if let Some(at) = self.timers[end as usize].set(next) {
            self.due.push(Reverse((at, end)));
        }
    }

    /// The adapter of `host` sends packets while its line is free, each from the next of its messages, and gives credit.
    fn serve(&mut self, fabric: &mut Fabric<'_>, host: u32) {
        while let Some(due) = self.adapters.next(fabric, host) {
            let place = match due {
                Due::Later(at) => {
                    self.due.push(Reverse((at, ADAPTER | host)));
                    continue;
                }
                Due::Packet(place) | Due::Credit(place) => place,
            };
            let Some(Ends::Rdma(ends)) = &mut self.slots[place as usize].ends else { continue };
            fabric.speak(place);
            if let Due::Credit(_) = due {
                let pause = ends.give_credit(fabric, self.adapters.adaption(host, ends));
                self.adapters.pause_credit(host, fabric.now() + pause);
                self.adapters.enter(host, place, ends.wish_again());
            } else {
                ends.send(fabric, 1 + self.adapters.active(host));
                let (wish, next) = (ends.wish(fabric.now(), true), ends.next());
                self.adapters.enter(host, place, wish);
                self.set_timer(2 * place, next);
            }
        }
    }

    fn finish(&mut self, place: u32) {
        let slot = &mut self.slots[place as usize];
        slot.note();
        (slot.ends, slot.is_live) = (None, false);
        self.adapters.leave(slot.row.to, place);
        let group = &mut self.groups[slot.group as usize];
        group.live -= 1;
        group.count(&slot.row);
        group.keep(slot.row);
        self.idle.push_back(place);
        for end in [2 * place, 2 * place + 1] {
            let _ = self.timers[end as usize].set(Time::NEVER);
        }
    }

    fn next(&self) -> Time {
        let first = |heap: &BinaryHeap<Reverse<(Time, u32)>>| heap.peek().map_or(Time::NEVER, |Reverse(first)| first.0);
        let ready = self.ready.peek().map_or(Time::NEVER, |Reverse(first)| first.0);
        first(&self.due).min(first(&self.coming)).min(ready)
    }
}

impl Agent for Messages {
    fn receives(&self) -> Vec<u32> {
        let of_group = |group: &Group| match &group.chain {
            _ if group.pairs.is_empty() => vec![group.flow, group.flow + 1],
            Some(_) => group.pairs.values().copied().collect(),
            None => vec![],
        };
        self.groups.iter().flat_map(of_group).collect()
    }

    fn start(&mut self) -> Time {
        self.next()
    }

    fn on_timer(&mut self, fabric: &mut Fabric<'_>) -> Time {
        let now = fabric.now();
        while let Some(&Reverse((at, end))) = self.due.peek().filter(|row| row.0.0 <= now) {
            self.due.pop();
            if end & ADAPTER != 0 {
                self.adapters.wake(end & !ADAPTER, at);
                self.serve(fabric, end & !ADAPTER);
                continue;
            }
            match self.timers[end as usize].on_event(at) {
                Alarm::RunOut => self.act(fabric, end, Told::Timer),
                Alarm::Later(at) => self.due.push(Reverse((at, end))),
                Alarm::Void => {}
            }
        }
        while let Some(&Reverse((_, place))) = self.coming.peek().filter(|row| row.0.0 <= now) {
            self.coming.pop();
            self.come(fabric, place);
        }
        self.end_gathered(fabric);
        while let Some(&Reverse((_, group, task))) = self.ready.peek().filter(|row| row.0.0 <= now) {
            self.ready.pop();
            self.begin_task(fabric, group, task);
        }
        self.next()
    }

    #[inline]
    fn on_frame(&mut self, fabric: &mut Fabric<'_>, frame: Received) -> Time {
        // What is meant for end 0 is data, and goes to the receiver.
        let end = frame.end ^ 1;
        self.act(fabric, end, Told::Frame(frame));
        self.next()
    }

    fn rows(&mut self) -> usize {
        self.groups.iter().map(|group| group.rows.len()).sum()
    }

    fn take_rows(&mut self, totals: &mut Totals) {
        for group in &mut self.groups {
            group.rows.iter().for_each(|row| group.taken[row.message.trailing_zeros() as usize] += 1);
            group.rows.sort_unstable_by_key(|row| row.message);
            totals.messages.append(&mut group.rows);
        }
    }

    fn report(&mut self, _: Time, totals: &mut Totals) {
        for (group, task, at) in self.gather() {
            if let Some(chain) = &mut self.groups[group as usize].chain {
                chain.end(task, at, Bytes::new(1), |_| ());
            }
        }
        for slot in &mut self.slots {
            if slot.is_live {
                slot.note();
                let group = &mut self.groups[slot.group as usize];
                group.count(&slot.row);
                group.keep(slot.row);
            }
        }
        self.take_rows(totals);
        for group in &mut self.groups {
            if let Some(chain) = &group.chain {
                group.totals.job = chain.job;
                totals.rounds.append(&mut chain.rounds(group.traffic));
            }
            totals.message_totals.push(group.totals);
        }
    }
}

fn messages_of(plan: &Plan, traffic: u32) -> &Spec {
    plan.spec.traffic[traffic as usize].messages.as_ref().expect("a group of messages has them")
}
