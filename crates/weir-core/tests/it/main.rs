//! Public laws of the core models.
mod aqm;
mod bbr;
mod bbr_hosts;
mod check;
mod ethernet;
mod network;
mod path;
mod queue;
mod rapid;
mod routing;
mod specs;
mod switching;
mod tcp;
mod tcp_line;
mod trace;
mod traffic;
mod units;
