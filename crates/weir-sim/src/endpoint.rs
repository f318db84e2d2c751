//! The agents that a scenario asks for.

use weir_core::units::Time;

use crate::agent::{Agent, PushedSource};
use crate::fabric::Fabric;
use crate::frames::Received;
use crate::messages::Messages;
use crate::probing::{ProbeReceiver, ProbeSender};
use crate::tcp::{TcpReceiver, TcpSender};
use crate::totals::Totals;

/// An agent of any kind that a scenario can ask for.
#[derive(Debug)]
pub enum Endpoint {
    /// A source whose frames are events.
    Source(PushedSource),
    /// The sending end of a connection.
    Sender(Box<TcpSender>),
    /// The receiving end of a connection.
    Receiver(Box<TcpReceiver>),
    /// The sending end of an estimator.
    Prober(Box<ProbeSender>),
    /// The receiving end of an estimator.
    Estimator(Box<ProbeReceiver>),
    /// All messages.
    Messages(Box<Messages>),
}

impl From<PushedSource> for Endpoint {
    fn from(source: PushedSource) -> Endpoint {
        Endpoint::Source(source)
    }
}

macro_rules! delegate {
    ($self:ident, $agent:ident => $call:expr) => {
        match $self {
            Endpoint::Source($agent) => $call,
            Endpoint::Sender($agent) => $call,
            Endpoint::Receiver($agent) => $call,
            Endpoint::Prober($agent) => $call,
            Endpoint::Estimator($agent) => $call,
            Endpoint::Messages($agent) => $call,
        }
    };
}

impl Agent for Endpoint {
    fn receives(&self) -> Vec<u32> {
        delegate!(self, agent => agent.receives())
    }

    fn start(&mut self) -> Time {
        delegate!(self, agent => agent.start())
    }

    #[inline]
    fn on_timer(&mut self, fabric: &mut Fabric<'_>) -> Time {
        delegate!(self, agent => agent.on_timer(fabric))
    }

    #[inline]
    fn on_frame(&mut self, fabric: &mut Fabric<'_>, frame: Received) -> Time {
        delegate!(self, agent => agent.on_frame(fabric, frame))
    }

    fn rows(&mut self) -> usize {
        delegate!(self, agent => agent.rows())
    }

    fn take_rows(&mut self, totals: &mut Totals) {
        delegate!(self, agent => agent.take_rows(totals));
    }

    fn report(&mut self, end: Time, totals: &mut Totals) {
        delegate!(self, agent => agent.report(end, totals));
    }
}
