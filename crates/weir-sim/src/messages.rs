//! Messages that come and go: one agent has all of them. What a message needs is made when it comes and given back when its sender knows
//! that it has arrived; of messages that are over, a row is kept.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::rc::Rc;

use weir_core::messages::{Events, Message};
use weir_core::queue::Lane;
use weir_core::rng::{Seed, mix};
use weir_core::spec::messages::{Arrivals, Messages as Spec, Packets};
use weir_core::tcp::{Receiver, Sender};
use weir_core::units::{Bytes, Span, Time};

use crate::agent::Agent;
use crate::bulk::Bulk;
use crate::chain::{Chain, NO_TASK};
use crate::fabric::Fabric;
use crate::frames::Received;
use crate::open::{End, empty_time};
use crate::plan::Plan;
use crate::tcp::{TcpReceiver, TcpSender};
use crate::timer::{Alarm, Timer};
use crate::totals::{MessageRow, MessageTotals, Totals};

/// All messages of a scenario.
#[derive(Debug)]
pub struct Messages {
    seed: Seed,
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
}

#[derive(Debug)]
struct Source {
    group: u32,
    /// Place in its list.
    place: u32,
    /// None of messages that are listed: `place` is the next one.
    events: Option<Events>,
}

#[derive(Debug)]
struct Group {
    /// Place in `traffic`.
    traffic: u32,
    /// The flow of its data; that of what comes back follows.
    flow: u32,
    /// Without connections: the flow from each host to each other.
    pairs: BTreeMap<(u32, u32), u32>,
    totals: MessageTotals,
    rows: Vec<MessageRow>,
    most_rows: usize,
    live: u64,
    /// Its tasks, if its messages wait for each other.
    chain: Option<Chain>,
}

#[derive(Debug)]
struct Slot {
    group: u32,
    row: MessageRow,
    ends: Option<Box<(TcpSender, TcpReceiver)>>,
    /// Whether its message is not over.
    is_live: bool,
    /// The task that its delivery ends, or [`NO_TASK`].
    task: u32,
}

impl Messages {
    /// The messages of `plan`, in the run with `seed`; none if it has none.
    pub(crate) fn new(plan: &Plan, seed: Seed) -> Option<Messages> {
        let mut messages = Messages {
            seed,
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
        };
        for (traffic, flow, spec) in plan.messages() {
            let group = messages.groups.len() as u32;
            messages.groups.push(Group {
                traffic,
                flow,
                pairs: if spec.config.is_some() {
                    BTreeMap::new()
                } else {
                    spec.pairs().into_iter().zip(flow..).collect()
                },
                totals: MessageTotals { traffic, stride: 1, ..MessageTotals::default() },
                rows: Vec::new(),
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

    fn begin(&mut self, fabric: &mut Fabric<'_>, now: Time, group: u32, spec: &Spec, message: Message, task: u32) {
        let Group { totals, flow, live, pairs, .. } = &mut self.groups[group as usize];
        let number = totals.arrived;
        totals.arrived += 1;
        totals.arrived_bytes += message.bytes.count();
        *live += 1;
        totals.most_live = totals.most_live.max(*live);
        let pair = pairs.get(&(message.from, message.to)).copied();
        let Empty { delivery, round_trip } = match pair {
            Some(flow) => {
                Empty { delivery: empty_of(fabric.plan, flow, spec.packets, message.bytes), round_trip: Span::ZERO }
            }
            None => fabric.empty(spec, message),
        };
        let row = MessageRow {
            traffic: totals.traffic,
            message: number,
            from: message.from,
            to: message.to,
            bytes: message.bytes,
            start: now,
            ideal: delivery,
            delivered: Time::NEVER,
            acknowledged: Time::NEVER,
            retransmits: 0,
            timeouts: 0,
        };
        let (Some(config), None) = (&spec.config, pair) else {
            let slot = Slot { group, row, ends: None, is_live: true, task };
            return self.hand_over(fabric, slot, pair, spec.packets);
        };
        let name = || format!("messages/{}/{number}/sender", fabric.plan.spec.traffic[totals.traffic as usize].name);
        let control = fabric.plan.message_controller(config, self.seed, name);
        let (mut sender, mut receiver) = (Sender::new(config, control), Receiver::new(config));
        if spec.handshake {
            sender.open(now);
        } else {
            sender.resume(now, &mut receiver, round_trip);
        }
        sender.write(message.bytes);
        sender.close();
        let ends = Box::new((TcpSender::of_message(sender, *flow), TcpReceiver::of_message(receiver, *flow)));
        let slot = Slot { group, row, ends: Some(ends), is_live: true, task };
        let place = self.place(fabric, slot);
        let hash = |end: u64| mix(u64::from(group) << 48 ^ number << 1 ^ end) as u32;
        let end = |host, which| End::new(host, hash(which), spec.balancing);
        // What is sent to the receiver is sent to end 0.
        fabric.set_ends(place, [end(message.to, 0), end(message.from, 1)]);
        self.act(fabric, 2 * place, |ends, fabric| ends.0.begin(fabric));
    }

    /// A place for a message; frames of the one that had it before are no more under way.
    fn place(&mut self, fabric: &Fabric<'_>, slot: Slot) -> u32 {
        if let Some(place) = self.idle.front().copied().filter(|&place| fabric.under_way(place) == 0) {
            self.idle.pop_front();
            self.slots[place as usize] = slot;
            return place;
        }
        self.slots.push(slot);
        self.timers.extend([Timer::IDLE; 2]);
        self.slots.len() as u32 - 1
    }

    /// All frames of a message without a connection are handed to its host.
    fn hand_over(&mut self, fabric: &mut Fabric<'_>, slot: Slot, flow: Option<u32>, packets: Packets) {
        let (bytes, now) = (slot.row.bytes.count(), fabric.now());
        let place = self.place(fabric, slot);
        let Some(flow) = flow else { return };
        fabric.watch.get_or_insert_default().bulk.get_or_insert_with(|| Rc::clone(&self.bulk));
        let full = packets.payload_bytes.count();
        self.bulk.borrow_mut().begin(flow, place, now, bytes.div_ceil(full));
        let mut left = bytes;
        while left > 0 {
            let data = left.min(full);
            fabric.send(flow, Bytes::new(data) + packets.header_bytes, Lane::Data);
            left -= data;
        }
    }

    /// Messages without connections that are over by now; returns the tasks that they were: group, place, time.
    fn gather(&mut self) -> Vec<(u32, u32, Time)> {
        let (arrived, lost) = self.bulk.borrow_mut().take();
        let mut tasks = Vec::new();
        for (place, at) in arrived {
            let slot = &mut self.slots[place as usize];
            slot.row.delivered = at;
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
    fn act(
        &mut self,
        fabric: &mut Fabric<'_>,
        end: u32,
        act: impl FnOnce(&mut (TcpSender, TcpReceiver), &mut Fabric<'_>) -> Time,
    ) {
        let slot = &mut self.slots[end as usize / 2];
        let Some(ends) = &mut slot.ends else { return };
        fabric.speak(end / 2);
        let next = act(ends, fabric);
        if let Some(at) = self.timers[end as usize].set(next) {
            self.due.push(Reverse((at, end)));
        }
        let is_over = end.is_multiple_of(2) && ends.0.is_over();
        if slot.task != NO_TASK && ends.1.has_all() {
            let (group, task) = (slot.group, std::mem::replace(&mut slot.task, NO_TASK));
            self.end_task(fabric, group, task, fabric.now());
        }
        if is_over {
            self.finish(end / 2);
        }
    }

    fn finish(&mut self, place: u32) {
        let slot = &mut self.slots[place as usize];
        slot.note();
        (slot.ends, slot.is_live) = (None, false);
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

impl Slot {
    /// Writes down what its ends know.
    fn note(&mut self) {
        if let Some(ends) = &self.ends {
            ends.0.note_in(&mut self.row);
            ends.1.note_in(&mut self.row);
        }
    }
}

impl Group {
    fn count(&mut self, row: &MessageRow) {
        let totals = &mut self.totals;
        if row.delivered < Time::NEVER {
            totals.delivered += 1;
            totals.delivered_bytes += row.bytes.count();
        }
        totals.retransmits += u64::from(row.retransmits);
        totals.timeouts += u64::from(row.timeouts);
        totals.acknowledged += u64::from(row.acknowledged < Time::NEVER);
    }

    fn keep(&mut self, row: MessageRow) {
        if !row.message.is_multiple_of(self.totals.stride) {
            return;
        }
        self.rows.push(row);
        while self.rows.len() > self.most_rows {
            self.totals.stride *= 2;
            let stride = self.totals.stride;
            self.rows.retain(|row| row.message.is_multiple_of(stride));
        }
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
            match self.timers[end as usize].on_event(at) {
                Alarm::RunOut => self.act(fabric, end, |ends, fabric| {
                    if end.is_multiple_of(2) { ends.0.on_timer(fabric) } else { ends.1.on_timer(fabric) }
                }),
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
        self.act(fabric, end, |ends, fabric| {
            if end.is_multiple_of(2) { ends.0.on_frame(fabric, frame) } else { ends.1.on_frame(fabric, frame) }
        });
        self.next()
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
        for group in &mut self.groups {
            group.rows.sort_unstable_by_key(|row| row.message);
            totals.messages.append(&mut group.rows);
            if let Some(chain) = &group.chain {
                group.totals.job = chain.job;
                totals.rounds.append(&mut chain.rounds(group.traffic));
            }
            totals.message_totals.push(group.totals);
        }
    }
}

/// What a message would meet alone.
struct Empty {
    /// Time until its last byte has arrived.
    delivery: Span,
    /// Time from a full segment, or its only one, to its acknowledgement.
    round_trip: Span,
}

impl Fabric<'_> {
    /// What `message` would meet in an empty network.
    fn empty(&mut self, spec: &Spec, message: Message) -> Empty {
        let none = Empty { delivery: Span::ZERO, round_trip: Span::from_ps(1) };
        let topology = &self.plan.topology;
        let (Some(open), Some(config)) = (&mut self.open, &spec.config) else { return none };
        let ways = (open.way(topology, message.from, message.to), open.way(topology, message.to, message.from));
        let (Some(there), Some(back)) = ways else { return none };
        let full = config.full_frame();
        let (fulls, rest) = (
            message.bytes.count() / config.segment_bytes.count(),
            message.bytes.count() % config.segment_bytes.count(),
        );
        let last = if rest == 0 { Bytes::ZERO } else { config.frame_of(rest) };
        let longest = if fulls == 0 { last } else { full };
        let round = |way: &[u32], frame: Bytes| empty_time(topology, way, frame, 1, Bytes::ZERO).ps();
        let acknowledgement = config.frame_of(0);
        Empty {
            delivery: empty_time(topology, &there, full, fulls, last),
            round_trip: Span::from_ps(round(&there, longest) + round(&back, acknowledgement)),
        }
    }

    /// The ends of connection `number` are those from now on: what is sent to the receiver, and what comes back.
    fn set_ends(&mut self, number: u32, ends: [End; 2]) {
        if let Some(open) = &mut self.open {
            open.place(number, ends);
            self.frames.make_room(number);
        }
    }

    /// An end of connection `number` acts.
    #[inline]
    fn speak(&mut self, number: u32) {
        if let Some(open) = &mut self.open {
            open.speaking = number;
        }
    }

    /// Frames of connection `number` under way.
    fn under_way(&self, number: u32) -> u32 {
        self.frames.under_way(number)
    }
}

/// Time until a message of frames alone has arrived over the way of `flow` in an empty network.
fn empty_of(plan: &Plan, flow: u32, packets: Packets, bytes: Bytes) -> Span {
    let full = packets.payload_bytes.count();
    let (fulls, rest) = (bytes.count() / full, bytes.count() % full);
    let last = if rest == 0 { Bytes::ZERO } else { Bytes::new(rest) + packets.header_bytes };
    empty_time(&plan.topology, plan.way(flow), packets.payload_bytes + packets.header_bytes, fulls, last)
}

fn messages_of(plan: &Plan, traffic: u32) -> &Spec {
    plan.spec.traffic[traffic as usize].messages.as_ref().expect("a group of messages has them")
}
