//! Discrete-event engine: builds networks out of the models of `weir-core`.
//!
//! Reading order:
//! 1. [`Plan`]: a spec, checked, with all paths laid; shared by all replicates.
//! 2. [`Fabric`]: ports, links and frames in motion; [`Agent`]: what lives at the ends; [`Endpoint`]: those of a spec.
//! 3. [`Sim`]: one run, and the law of conservation.
//! 4. [`simulate`]: a batch of replicates on several threads; [`Tables`]: its columns.
//! 5. [`path`]: a transfer and echo requests over the lines that the live emulator uses.
//! 6. [`workloads`]: loads with published exact counts.
//!
//! A port and a link have at most one pending event, and of those of an agent one counts; events are taken in the order
//! (time, entity id). Ids go by class: the wakes of all ports, then the arrivals over all links, then the timers of agents. So a
//! port whose transmission ends serves its queue before a frame that arrives at the same time is admitted, and
//! adding an agent at the end moves nothing.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod agenda;
mod agent;
mod batch;
mod boundaries;
mod bulk;
mod capture;
mod chain;
mod control;
mod deliveries;
mod drops;
mod endpoint;
mod fabric;
mod feed;
mod forwarding;
mod frames;
pub mod hotspots;
mod limiting;
mod line;
mod messages;
mod noticed;
mod open;
pub mod path;
mod plan;
mod probes;
mod probing;
mod rdma;
mod reckoning;
mod route;
mod script;
mod sim;
mod slotted;
mod spill;
mod tables;
mod tcp;
mod timer;
mod totals;
mod wire;
pub mod workloads;

pub use agent::{Agent, PushedSource};
pub use batch::{Progress, simulate, simulate_to};
pub use endpoint::Endpoint;
pub use fabric::Fabric;
pub use frames::{Body, Received};
pub use messages::Messages;
pub use plan::{Feeding, Parts, Plan};
pub use probes::{Intervals, PortInterval};
pub use sim::{Counts, Seen, Sim, SimError};
pub use spill::Sink;
pub use tables::Tables;
pub use tcp::{TcpReceiver, TcpSender};
pub use totals::{
    BufferTotals, BurstInterval, BurstTotals, CaptureFile, CauseTotals, ClassTotals, ConnectionInterval,
    ConnectionTotals, ControlFrames, ControlInterval, ControlKind, ControlTotals, DeadlockTotals, Delivery, DropCause,
    DropTotals, FlowTotals, HoldInterval, HoldTotals, InputTotals, LimiterInterval, MarkTotals, MemoryTotals,
    MessageRow, MessageTotals, PoolInterval, PortTotals, RoundTotals, StormTotals, Totals,
};
pub use weir_core::columns::{Column, Table, Values};
