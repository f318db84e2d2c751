//! What a direction of a flow did in each interval.

use crate::row;

row! {
    /// An interval of a flow that carried something.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Row {
        pub(crate) flow: u32,
        /// Its end.
        pub(crate) end_ps: u64 => t_ps,
        pub(crate) packets: u64,
        pub(crate) frame_bytes: u64,
        pub(crate) payload_bytes: u64,
        pub(crate) new_bytes: u64,
        pub(crate) retransmitted: u64,
        pub(crate) reordered: u64,
        pub(crate) dup_acks: u64,
        pub(crate) acked_bytes: u64,
        /// Most bytes that were not yet acknowledged.
        pub(crate) flight_max: u64 => flight_max_bytes,
        /// Smallest window that the other side announced.
        pub(crate) window_min: Option<u64> => window_min_bytes,
        pub(crate) rtts: u64,
        pub(crate) rtt_sum_ps: u128,
        pub(crate) rtt_min_ps: Option<u64>,
        pub(crate) rtt_max_ps: Option<u64>,
        /// How often data left after the acknowledgment that let it go.
        pub(crate) behinds: u64,
        /// The least time from one to the other.
        pub(crate) behind_min_ps: Option<u64>,
    }
}

impl Row {
    fn new(flow: u32, now_ps: u64, every_ps: u64) -> Row {
        Row { flow, end_ps: (now_ps / every_ps + 1).saturating_mul(every_ps), ..Row::default() }
    }

    pub(crate) fn behind(&mut self, ps: u64) {
        self.behinds += 1;
        self.behind_min_ps = Some(self.behind_min_ps.map_or(ps, |least| least.min(ps)));
    }

    pub(crate) fn rtt(&mut self, ps: u64) {
        self.rtts += 1;
        self.rtt_sum_ps += u128::from(ps);
        self.rtt_min_ps = Some(self.rtt_min_ps.map_or(ps, |least| least.min(ps)));
        self.rtt_max_ps = self.rtt_max_ps.max(Some(ps));
    }
}

/// The rows that are closed, and how long an interval is.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) every_ps: u64,
    pub(crate) rows: Vec<Row>,
    pub(crate) most: usize,
    /// Rows that did not fit.
    pub(crate) left_out: u64,
}

impl Series {
    pub(crate) fn new(every_ps: u64, most: usize) -> Series {
        Series { every_ps: every_ps.max(1), rows: Vec::new(), most, left_out: 0 }
    }

    fn close(&mut self, row: Row) {
        if self.rows.len() < self.most { self.rows.push(row) } else { self.left_out += 1 }
    }
}

/// The interval of a direction that is still open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Open(Option<Box<Row>>);

impl Open {
    /// The row of `now_ps`; the one before it is closed. Stamps that go back count in the open row.
    #[inline]
    pub(crate) fn at(&mut self, flow: u32, now_ps: u64, series: &mut Series) -> &mut Row {
        let every_ps = series.every_ps;
        let row = self.0.get_or_insert_with(|| Box::new(Row::new(flow, now_ps, every_ps)));
        if now_ps >= row.end_ps {
            series.close(**row);
            **row = Row::new(flow, now_ps, every_ps);
        }
        row
    }

    /// The flow has ended.
    pub(crate) fn end(&mut self, series: &mut Series) {
        if let Some(row) = self.0.take() {
            series.close(*row);
        }
    }
}
