//! Tables of names: what the ids in the others stand for.

use weir_core::columns::{Named, Table};
use weir_core::estimation::{Aggregate, Ending, Quantity, Verdict};
use weir_core::rapid::{Outcome, ProbeState};
use weir_core::table;

use super::numbered;
use crate::control::pools;
use crate::plan::Plan;
use crate::totals::{ControlKind, DropCause};

pub(super) fn tables(plan: &Plan) -> Vec<Table> {
    let topology = &plan.topology;
    let node = |id: u32| topology.nodes.get(id as usize).map_or("*", |node| &node.name).to_string();
    let names = plan.flow_names();
    vec![
        table!("prober_names", "An estimator of bandwidth.": numbered(&plan.probers) => |(id, row)|
            prober: U32 = id,
            /// `FROM->TO` of its hosts with the entry of traffic.
            name: Text = names[row.flow as usize].clone(),
            /// Id of the flow of its trains.
            flow: U32 = row.flow,
            /// Id of its entry of traffic.
            traffic: U32 = plan.flows[row.flow as usize].traffic,
        ),
        Table::of_names("quantity_names", "What an estimator measures.", "quantity", Quantity::NAMES),
        Table::of_names("ending_names", "How a measurement of an estimator ended.", "ending", Ending::NAMES),
        Table::of_names(
            "trend_names",
            "What the delays of a train do.",
            "trend",
            Verdict::NAMES.iter().chain(&["none"]),
        ),
        Table::of_names(
            "fleet_names",
            "What the trains of a fleet say together.",
            "fleet",
            Aggregate::NAMES.iter().chain(&["none"]),
        ),
        Table::of_names("outcome_names", "What a probe stream came to.", "outcome", Outcome::NAMES),
        Table::of_names("state_names", "A state of a sender by Rapid.", "state", ProbeState::NAMES),
        table!("connection_names", "A TCP connection.": numbered(&plan.connections) => |(id, row)|
            connection: U32 = id,
            /// Name of the flow of its data.
            name: Text = names[row.flow as usize].clone(),
            /// Id of the flow of its data.
            flow: U32 = row.flow,
            traffic: U32 = plan.flows[row.flow as usize].traffic,
        ),
        table!("flow_names", "A flow.": numbered(plan.counted_flows()).zip(names.clone()) => |((id, row), text)|
            flow: U32 = id,
            /// Name.
            name: Text = text,
            traffic: U32 = row.traffic,
            /// Host that sends; `*` of messages.
            from: Text = node(row.from),
            /// Host that receives; of frames that draw theirs, each is a flow. `*` of messages.
            to: Text = node(row.to),
            /// `data` or `acknowledgements`.
            carries: Text = if row.returns { "acknowledgements" } else { "data" }.to_string(),
        ),
        table!("port_names", "A port.": numbered(&topology.ports) => |(id, row)|
            port: U32 = id,
            /// `FROM->TO`.
            name: Text = row.name.clone(),
            /// Node that transmits.
            from: Text = node(row.from),
            /// Node at the other end of the link.
            to: Text = node(row.to),
            /// `host` or `switch`.
            from_kind: Text = topology.nodes[row.from as usize].kind.word().to_string(),
            /// Line rate.
            rate_bps: U64 = row.link.rate_bps.bps(),
            /// What a frame occupies beyond its size.
            framing_bytes: U64 = row.link.framing_bytes.count(),
        ),
        table!("pool_names", "A part of the buffer of a switch of which a port is recorded.": (0..).zip(pools::recorded(plan).flat_map(|found| found.parts)) => |(id, row)|
            /// The number of the part.
            pool: U32 = id,
            /// The switch and the part.
            name: Text = format!("{} {}", node(row.node), row.what()),
            /// The switch.
            switch: Text = node(row.node),
            /// `whole`: all that waits there; `headroom`: what of it is in the headroom of inputs; `ingress`, `egress`: what is shared of a pool by input or output.
            part: Text = row.word().to_string(),
            /// The traffic classes of a pool.
            classes: Text = row.listed(),
            /// Its size.
            size_bytes: U64 = row.bytes.count(),
        ),
        table!("traffic_names", "An entry of traffic.": numbered(&plan.spec.traffic) => |(id, row)|
            traffic: U32 = id,
            /// Name in the scenario; what a hotspot adds or interrupts has names of its own.
            name: Text = row.name.clone(),
        ),
        Table::of_names("cause_names", "Why frames are dropped.", "cause", DropCause::NAMES),
        Table::of_names("kind_names", "A kind of control frame.", "kind", ControlKind::NAMES),
    ]
}
