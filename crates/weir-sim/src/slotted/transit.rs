//! The way of the cells through a slot: switches serve, hosts send, what was sent arrives.

use weir_core::units::Time;

use super::bits;
use super::cell::Flight;
use super::{Kernel, Message};
use crate::slotted::cell::Cell;
use crate::slotted::lanes::NONE;
use crate::slotted::switches::{Arrival, News, Uplinks};

impl Kernel {
    /// Outputs of switches serve.
    #[inline]
    pub(super) fn serve<const BY_INPUT: bool, const STAR: bool>(&mut self, now: u32) {
        let words = self.lanes.first / 64;
        for word in 0..words {
            self.serve_hosts::<BY_INPUT, STAR>(word, now);
        }
        if words < self.queues.busy.len() {
            let place = self.place(now + 1 + self.lags.to_switch);
            let mut flights = std::mem::take(&mut self.flights[place]);
            for word in words..self.queues.busy.len() {
                self.serve_switches::<BY_INPUT>(word, now, &mut flights);
            }
            self.flights[place] = flights;
        }
        for switch in 0..self.queues.memories.len() {
            let memory = &self.queues.memories[switch];
            if memory.marks.is_low(memory.space.level()) {
                self.ask_all(switch, now);
            }
        }
    }

    /// The lanes of a word, which lead to hosts.
    #[inline(always)]
    fn serve_hosts<const BY_INPUT: bool, const STAR: bool>(&mut self, word: usize, now: u32) {
        let mut todo = self.queues.busy[word] & !self.holds.lanes_held[word];
        for place in bits::of(self.outlets.slow_now[word]) {
            let waits = todo & 1 << place != 0;
            if !self.outlets.serves(64 * word + place, waits) {
                todo &= !(1 << place);
            }
        }
        self.turn.begin(todo);
        while let Some(link) = self.queues.serve::<BY_INPUT, STAR>(word, &mut self.turn, now) {
            // It is a switch or a host that may go on: no lane of this word.
            self.ask_one(link, now);
        }
        if self.outlets.has_buffers() {
            let place = self.place(now + 1 + self.lags.to_host);
            self.flights[place].extend(self.turn.flights(word));
        } else {
            let arrival = now + 1 + self.lags.to_host;
            if arrival < self.end {
                self.books.hops += self.turn.cells().len() as u64;
                self.books.deliver(self.turn.cells(), arrival);
            } else {
                self.stranded.extend(self.turn.cells());
            }
        }
        self.queues.end_turn(word, &self.turn);
    }

    /// The lanes of a word, which lead to switches.
    #[inline(always)]
    fn serve_switches<const BY_INPUT: bool>(&mut self, word: usize, now: u32, flights: &mut Vec<Flight>) {
        let busy = self.queues.busy[word];
        self.turn.begin(busy & !self.holds.lanes_held[word]);
        while let Some(link) = self.queues.serve::<BY_INPUT, false>(word, &mut self.turn, now) {
            let last = 63 - self.turn.served.leading_zeros();
            self.ask_one(link, now);
            self.turn.todo = busy & !self.holds.lanes_held[word] & later(last);
        }
        flights.extend(self.turn.flights(word));
        self.queues.end_turn(word, &self.turn);
    }

    /// Where the cells that arrive at the beginning of a slot are kept: there is a power of two of places.
    #[inline]
    fn place(&self, slot: u32) -> usize {
        slot as usize & (self.flights.len() - 1)
    }

    /// Hosts generate and send.
    #[inline]
    pub(super) fn send<const BY_INPUT: bool, const STAR: bool>(&mut self, now: u32) {
        self.adapters.step(now, &self.holds.hosts_held);
        let arrival = now + 1 + self.lags.to_switch;
        if self.lags.to_switch == 0 && arrival < self.end {
            self.books.hops += self.adapters.sends().len() as u64;
            let mut next = 0;
            loop {
                let uplinks = Uplinks { first: self.lanes.uplink(0), host_of: self.adapters.hosts_of_sources() };
                let cells = self.adapters.sends();
                match self.queues.admit::<BY_INPUT, STAR>(&self.routes, uplinks, cells, &mut next, arrival) {
                    Some(news) => self.on_news(news, arrival),
                    None => break,
                }
            }
            return;
        }
        let place = self.place(arrival);
        self.split[place] = self.flights[place].len();
        let uplinks = Uplinks { first: self.lanes.uplink(0), host_of: self.adapters.hosts_of_sources() };
        let flight = |&cell: &Cell| Flight { cell, link: cell.link(uplinks) };
        self.flights[place].extend(self.adapters.sends().iter().map(flight));
    }

    /// What arrives at the beginning of slot `now`, and what the switches make of it.
    #[inline]
    pub(super) fn arrive<const BY_INPUT: bool, const STAR: bool>(&mut self, now: u32) {
        if now >= self.end {
            return;
        }
        let place = self.place(now);
        if !self.flights[place].is_empty() {
            let mut flights = std::mem::take(&mut self.flights[place]);
            // Links of hosts come first, as their ids do.
            let (of_switches, of_hosts) = flights.split_at(std::mem::take(&mut self.split[place]).min(flights.len()));
            for flights in [of_hosts, of_switches] {
                if self.outlets.has_buffers() {
                    flights.iter().for_each(|flight| self.arrive_last::<BY_INPUT, STAR>(flight, now));
                } else {
                    self.admit::<BY_INPUT, STAR>(flights, now);
                }
            }
            flights.clear();
            self.flights[place] = flights;
        }
        self.take_from_buffers(now);
        for switch in 0..self.queues.memories.len() {
            let memory = &mut self.queues.memories[switch];
            memory.space.note();
            if memory.marks.is_high(memory.space.level()) {
                self.ask_all(switch, now);
            }
        }
    }

    /// A cell arrives where hosts have buffers.
    fn arrive_last<const BY_INPUT: bool, const STAR: bool>(&mut self, flight: &Flight, now: u32) {
        let link = flight.link as usize;
        if self.queues.inputs[link].switch != NONE {
            self.admit::<BY_INPUT, STAR>(std::slice::from_ref(flight), now);
        } else if self.outlets.has_buffer(link) {
            self.books.hops += 1;
            self.outlets.arrive(link, flight.cell);
        } else {
            self.books.hops += 1;
            self.books.deliver(&[flight.cell], now);
        }
    }

    fn take_from_buffers(&mut self, now: u32) {
        if !self.outlets.has_buffers() {
            return;
        }
        let books = &mut self.books;
        let mut turned = Vec::new();
        self.outlets.take(|cell| books.deliver(&[cell], now), |host, stop| turned.push((host, stop)));
        for (host, stop) in turned {
            let link = host as u32;
            self.holds.ask(link, now, stop, None);
            self.later(now, self.hold_delays[host], Message::Hold { link, stop });
        }
    }

    /// Cells enter switches at the beginning of slot `now`.
    #[inline(always)]
    fn admit<const BY_INPUT: bool, const STAR: bool>(&mut self, flights: &[Flight], now: u32) {
        self.books.hops += flights.len() as u64;
        let mut next = 0;
        loop {
            let uplinks = Uplinks { first: self.lanes.uplink(0), host_of: self.adapters.hosts_of_sources() };
            match self.queues.admit::<BY_INPUT, STAR>(&self.routes, uplinks, flights, &mut next, now) {
                Some(news) => self.on_news(news, now),
                None => break,
            }
        }
    }

    #[inline(never)]
    fn on_news(&mut self, news: News, now: u32) {
        let News { cell, link, lane, is_dropped, is_alarm, is_sampled } = news;
        if is_dropped {
            return self.drop(lane, cell, now);
        }
        if is_alarm {
            self.ask_one(link, now);
        }
        if is_sampled {
            self.sample(lane, cell, now);
        }
    }

    /// The congestion point of `lane` looks at its queue.
    #[cold]
    fn sample(&mut self, lane: usize, cell: Cell, now: u32) {
        let Some(points) = &mut self.points else { return };
        let is_sampled = points.is_sampled(lane);
        let output = &mut self.queues.outputs[lane];
        let skip = points.skip(lane).and_then(|skip| u32::try_from(skip).ok()).unwrap_or(NONE);
        output.next_sample = output.taken().saturating_add(1).saturating_add(skip);
        if !is_sampled {
            return;
        }
        let (queue, switch) = (self.size * u64::from(output.len()), output.switch);
        let host = self.adapters.host_of(cell.source()).into();
        let tag = self.adapters.tag(cell, lane < self.lanes.first);
        let at = Time::ZERO + self.slot * u64::from(now);
        if let Some((delay, place)) = points.sample((lane as u32, switch), queue, tag, (host, cell.to()), at) {
            self.later(now, delay, Message::Feedback { place });
        }
    }

    #[cold]
    fn drop(&mut self, lane: usize, cell: Cell, now: u32) {
        let drops = &mut self.lane_drops[lane];
        if drops.0 == 0 {
            drops.1 = now;
        }
        drops.0 += 1;
        drops.2 = now;
        let flow = self.books.flow(cell) as u32;
        *self.drops.entry((self.lanes.port(lane as u32), flow)).or_default() += 1;
        let output = &mut self.queues.outputs[lane];
        if self.points.as_ref().is_some_and(|points| points.counts_drops) && output.next_sample != NONE {
            output.next_sample -= 1;
            if output.taken() == output.next_sample {
                self.sample(lane, cell, now);
            }
        }
    }
}

/// The bits behind `place`.
fn later(place: u32) -> u64 {
    u64::MAX << place << 1
}
