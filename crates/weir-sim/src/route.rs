//! Flows, and the words that stand behind the ports of their ways.

/// Behind the last port of a route.
pub(crate) const ARRIVED: u32 = u32::MAX;
/// Behind a port: the node that it leads to is asked.
pub(crate) const ASK: u32 = u32::MAX - 1;
/// Behind a port whose link went down with the frame on it.
pub(crate) const LOST: u32 = u32::MAX - 2;

/// Behind a port: the node that it leads to chooses for each frame; see [`crate::open`].
pub(crate) const OPEN: u32 = u32::MAX - 3;

/// Frames of one source to one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) traffic: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The traffic class of its frames.
    pub(crate) class: u8,
    /// Where its ports begin in [`Plan::route`].
    pub(crate) first_leg: u32,
    /// Whether it carries only what comes back to the sender of another flow, the one before it.
    pub(crate) returns: bool,
    /// Whether its frames belong to messages, each with ends of its own; see [`crate::open`].
    pub(crate) is_open: bool,
}
