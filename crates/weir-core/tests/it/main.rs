//! Public laws of the core models.
mod check;
mod network;
mod queue;
mod routing;
mod specs;
mod traffic;
mod units;
