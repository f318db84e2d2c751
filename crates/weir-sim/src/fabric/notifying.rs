//! Notifications: what queues that measure send back, and what becomes of it.

use weir_core::ethernet::reaction::Feedback;
use weir_core::spec::control::NotificationLane;

use super::Fabric;
use crate::control::Task;
use crate::control::plan::{NO_WAY, lane, notification};
use crate::frames::{Body, Frame, FrameId, Kind};
use crate::route::ARRIVED;

impl Fabric<'_> {
    /// The queue of `port` has feedback for `flow`, of which a frame came there on `leg`.
    pub(crate) fn notify(&mut self, port: u32, flow: u32, leg: u32, feedback: Feedback) {
        let (Some(shared), Some(notification)) = (&self.plan.control, notification(&self.plan.spec)) else { return };
        if notification.lane == NotificationLane::Beside {
            return self.notify_beside(port, flow, leg, feedback);
        }
        let way_back = shared.ways_back[flow as usize];
        if way_back == NO_WAY {
            return;
        }
        // The way back begins at the end of the route; the port before this one is the first to be passed back.
        let leg = way_back + self.route_length(flow) - self.ports_before(flow, leg);
        let task = Task::Notify { flow, leg, point: port, feedback };
        self.plan_task(self.plan.route[leg as usize], self.now + notification.delay_ps, task);
    }

    /// As [`Fabric::notify`], for a notification that is no frame: it takes the delays of links and switches on its way back.
    pub(super) fn notify_beside(&mut self, port: u32, flow: u32, leg: u32, feedback: Feedback) {
        let plan = self.plan;
        let (Some(shared), Some(notification)) = (&plan.control, notification(&plan.spec)) else { return };
        self.note_control(port, port, feedback.into(), notification.frame_bytes);
        let first = plan.start_of_route(leg);
        let outlet = plan.route[first as usize];
        let host = plan.topology.ports[outlet as usize].from;
        if !shared.limited[host as usize] {
            return;
        }
        let back = plan.route[first as usize..leg as usize].iter().map(|&port| plan.lag(port as usize ^ 1));
        let response = shared.responses[host as usize].1;
        let at = back.fold(self.now + notification.delay_ps + response, |at, lag| at + lag);
        let key = if plan.is_switched() { plan.end_of_route(leg) } else { flow };
        let task = Task::Obey { key, point: port, feedback };
        self.plan_task(outlet, at, task);
    }

    /// A notification sets out at `port`.
    pub(crate) fn send_notification(&mut self, port: u32, flow: u32, leg: u32, point: u32, feedback: Feedback) {
        let Some(notification) = notification(&self.plan.spec) else { return };
        let (size, lane) = (notification.frame_bytes, lane(notification));
        self.count_control(port, point, feedback.into(), size);
        let frame = Frame::new(self.now, flow, leg, size, lane).of_kind(Kind::Notification);
        let id = self.frames.put_loaded(frame, Body::Notification { point, feedback });
        self.offer(port, id, size, lane);
    }

    /// A notification has come back to the host of its flow.
    pub(crate) fn receive_notification(&mut self, id: FrameId) {
        let flow = self.frames[id].flow;
        let body = self.frames.body(id);
        self.end_control(id);
        let (Some(shared), Body::Notification { point, feedback }) = (&self.plan.control, body) else { return };
        let sent = &self.plan.flows[flow as usize];
        let port = self.plan.route[sent.first_leg as usize];
        if shared.limited[sent.from as usize] {
            let response = shared.responses[sent.from as usize].1;
            self.plan_task(port, self.now + response, Task::Obey { key: self.plan.key(flow), point, feedback });
        }
    }

    /// Where the route of `flow` begins, and how many ports it has up to `leg`.
    fn ports_before(&self, flow: u32, leg: u32) -> u32 {
        leg - self.plan.flows[flow as usize].first_leg
    }

    /// How many ports the route of `flow` has.
    fn route_length(&self, flow: u32) -> u32 {
        let first = self.plan.flows[flow as usize].first_leg as usize;
        (0..).find(|&n| self.plan.route[first + n as usize] == ARRIVED).unwrap_or(0)
    }
}
