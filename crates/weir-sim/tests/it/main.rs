//! Public laws of the simulator.
mod agents;
mod aqm;
mod batch;
mod control;
mod counts;
mod laws;
mod links;
mod marks;
mod odd_networks;
mod overruns;
mod path;
mod probes;
mod rapid;
mod scenarios;
mod slotted;
mod switching;
mod tcp;
