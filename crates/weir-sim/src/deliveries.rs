//! What is known of frames that arrive: totals of each flow, and for those who ask series and distributions.

use std::cell::RefCell;
use std::rc::Rc;

use weir_core::histogram::Histogram;
use weir_core::spec::{Departures, Source};
use weir_core::units::{Bytes, Span, Time};

use crate::boundaries::Boundaries;
use crate::bulk::Bulk;
use crate::plan::Plan;
use crate::route::Flow;
use crate::totals::{BurstInterval, Delivery, Totals};

/// What became of the frames of one flow.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct FlowCounters {
    pub(crate) sent_frames: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) delivered_frames: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) delay_sum_ps: u128,
    pub(crate) delay_min: Span,
    pub(crate) delay_max: Span,
}

impl FlowCounters {
    /// Nothing happened yet.
    pub(crate) const NEW: FlowCounters = FlowCounters {
        sent_frames: 0,
        sent_bytes: 0,
        delivered_frames: 0,
        delivered_bytes: 0,
        delay_sum_ps: 0,
        delay_min: Span::from_ps(u64::MAX),
        delay_max: Span::ZERO,
    };

    /// A frame was generated.
    #[inline]
    pub(crate) fn send(&mut self, size: Bytes) {
        self.sent_frames += 1;
        self.sent_bytes += size.count();
    }

    /// A frame arrived.
    #[inline]
    pub(crate) fn deliver(&mut self, size: Bytes, delay: Span) {
        self.delivered_frames += 1;
        self.delivered_bytes += size.count();
        self.delay_sum_ps += u128::from(delay.ps());
        self.delay_min = self.delay_min.min(delay);
        self.delay_max = self.delay_max.max(delay);
    }
}

/// What is written down of deliveries besides the totals.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// One for each flow, or none.
    pub(crate) delays: Vec<Histogram>,
    /// One for each group of traffic.
    pub(crate) traffic: Vec<Option<TrafficProbe>>,
    /// One for each flow, or none.
    pub(crate) flows: Vec<Option<TrafficProbe>>,
    /// One for each flow, if there are bursts of more than a frame.
    pub(crate) bursts: Vec<Bursts>,
    /// Whether bursts are reported.
    pub(crate) reports_bursts: bool,
    /// What is still to arrive of messages without connections, if there are any.
    pub(crate) bulk: Option<Rc<RefCell<Bulk>>>,
}

/// The bursts of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bursts {
    /// When the first frame of the burst that arrives was generated; [`Time::NEVER`] between two bursts.
    pub(crate) born: Time,
    pub(crate) count: u64,
    pub(crate) delay_sum_ps: u128,
    pub(crate) delay_min: Span,
    pub(crate) delay_max: Span,
}

impl Bursts {
    pub(crate) const NEW: Bursts = Bursts {
        born: Time::NEVER,
        count: 0,
        delay_sum_ps: 0,
        delay_min: Span::from_ps(u64::MAX),
        delay_max: Span::ZERO,
    };

    /// A frame that was generated at `born` arrived at `now`. Returns the delay of the burst that it ends.
    pub(crate) fn on_frame(&mut self, now: Time, born: Time, ends_burst: bool) -> Option<Span> {
        self.born = self.born.min(born);
        if !ends_burst {
            return None;
        }
        let delay = now - self.born;
        self.born = Time::NEVER;
        self.count += 1;
        self.delay_sum_ps += u128::from(delay.ps());
        self.delay_min = self.delay_min.min(delay);
        self.delay_max = self.delay_max.max(delay);
        Some(delay)
    }
}

/// Whether bursts are reported: in networks with shared memories, adapters or slow outputs; not with DCQCN, where frames
/// carry marks instead.
pub(crate) fn reports_bursts(plan: &Plan) -> bool {
    plan.is_switched() && plan.spec.control.dcqcn.is_none()
}

/// Whether a source of `plan` sends bursts of more than a frame that are distinguished.
pub(crate) fn has_bursts(plan: &Plan) -> bool {
    let is_long =
        |source: &Source| matches!(source.departures, Departures::Bursts { mean_frames, .. } if mean_frames > 1.0);
    reports_bursts(plan) && plan.spec.traffic.iter().flat_map(|group| &group.sources).any(is_long)
}

impl Watch {
    /// What the spec of `plan` asks for, if anything.
    pub(crate) fn new(plan: &Plan, end: Time) -> Option<Watch> {
        let record = &plan.spec.record;
        let bursts = if has_bursts(plan) { plan.counted_flows().len() } else { 0 };
        if !record.delays && record.traffic.is_empty() && record.flows.is_empty() && bursts == 0 {
            return None;
        }
        let mut traffic: Vec<Option<TrafficProbe>> = plan.spec.traffic.iter().map(|_| None).collect();
        for probe in &record.traffic {
            traffic[probe.traffic as usize] = Some(TrafficProbe::new(probe.every_ps, end));
        }
        let of_flow = |flow: &Flow| {
            let probe = record.flows.iter().find(|probe| probe.traffic == flow.traffic);
            probe.map(|probe| TrafficProbe::new(probe.every_ps, end))
        };
        let flows = if record.flows.is_empty() { Vec::new() } else { plan.flows.iter().map(of_flow).collect() };
        let histograms = if record.delays { plan.flows.len() } else { 0 };
        let (delays, bursts) = (vec![Histogram::default(); histograms], vec![Bursts::NEW; bursts]);
        Some(Watch { delays, traffic, flows, bursts, reports_bursts: reports_bursts(plan), bulk: None })
    }

    /// A frame of `flow`, which counts for the group `traffic`, arrived at `now`; whether it `ends` its burst. Returns whether it ends a
    /// message without a connection.
    #[cold]
    pub(crate) fn on_delivery(
        &mut self,
        now: Time,
        flow: u32,
        traffic: Option<u32>,
        size: Bytes,
        delay: Span,
        ends: bool,
    ) -> bool {
        let ends_message = self.bulk.as_ref().is_some_and(|bulk| bulk.borrow_mut().on_frame(flow, now - delay, now));
        let burst = match self.bursts.get_mut(flow as usize) {
            Some(bursts) => bursts.on_frame(now, now - delay, ends),
            None => self.reports_bursts.then_some(delay),
        };
        if let Some(histogram) = self.delays.get_mut(flow as usize) {
            histogram.count(delay);
        }
        if let Some(traffic) = traffic
            && let Some(Some(probe)) = self.traffic.get_mut(traffic as usize)
        {
            probe.on_delivery(now, size.count());
        }
        if let Some(Some(probe)) = self.flows.get_mut(flow as usize) {
            probe.on_delivery(now, size.count());
            if let Some(delay) = burst {
                BurstInterval::count(&mut probe.bursts, probe.current.t_ps, delay);
            }
        }
        ends_message
    }
}

impl Watch {
    fn probes(&mut self) -> impl Iterator<Item = &mut TrafficProbe> {
        self.traffic.iter_mut().chain(&mut self.flows).flatten()
    }

    /// Writes the intervals that ended up to `now`; returns how many rows there are.
    pub(crate) fn advance(&mut self, now: Time) -> usize {
        self.probes()
            .map(|probe| {
                probe.advance(now);
                probe.rows.len() + probe.bursts.len()
            })
            .sum()
    }

    /// Moves the rows of intervals that are over to `totals`.
    pub(crate) fn take(&mut self, totals: &mut Totals) {
        for (probes, written) in
            [(&mut self.traffic, &mut totals.deliveries), (&mut self.flows, &mut totals.flow_deliveries)]
        {
            for (id, probe) in (0..).zip(probes) {
                if let Some(probe) = probe {
                    written.push((id, std::mem::take(&mut probe.rows)));
                }
            }
        }
        for (id, probe) in (0..).zip(&mut self.flows) {
            if let Some(probe) = probe {
                let over = probe.bursts.partition_point(|row| row.t_ps < probe.current.t_ps);
                totals.burst_intervals.push((id, probe.bursts.drain(..over).collect()));
            }
        }
    }
}

/// Writes down the intervals of one group of traffic, or of one flow.
#[derive(Debug)]
pub(crate) struct TrafficProbe {
    pub(crate) boundaries: Boundaries,
    /// The interval under way, and its number.
    pub(crate) current: Delivery,
    number: u32,
    pub(crate) rows: Vec<Delivery>,
    /// Of one flow: the bursts that arrived whole.
    pub(crate) bursts: Vec<BurstInterval>,
}

impl TrafficProbe {
    pub(crate) fn new(every: Span, end: Time) -> TrafficProbe {
        let boundaries = Boundaries::new(every, end);
        let current = Delivery { t_ps: boundaries.at(1).ps(), frames: 0, bytes: 0 };
        TrafficProbe { boundaries, current, number: 1, rows: Vec::new(), bursts: Vec::new() }
    }

    /// Writes the intervals that ended up to `now`.
    pub(crate) fn advance(&mut self, now: Time) {
        while self.current.t_ps <= now.ps() {
            self.number += 1;
            let t_ps = self.boundaries.at(self.number).ps();
            self.rows.push(std::mem::replace(&mut self.current, Delivery { t_ps, frames: 0, bytes: 0 }));
        }
    }

    /// A frame was delivered at `now`.
    pub(crate) fn on_delivery(&mut self, now: Time, bytes: u64) {
        self.advance(now);
        self.current.frames += 1;
        self.current.bytes += bytes;
    }
}
