//! Packet traces: captures read as a stream, flows found in them, and captures written.
//!
//! Reading order:
//! 1. [`Capture`]: pcap, pcapng and ERF, recognised by their content; `Record` by `Record`, memory for one.
//! 2. [`packet`]: what a frame is, as far as it was kept; [`Segment`]: what TCP says.
//! 3. [`Analysis`]: connections and their two directions; its results leave as tables.
//! 4. [`Writer`]: pcapng out; [`frames`]: headers for simulated frames.
//! 5. [`Timeline`]: tracks, slices and counters out, for Perfetto; [`Drawing`]: the frames of a capture on one.
//!
//! Limits: encrypted tunnels and those that `layers` does not name are not looked into, and counted; checksums are not
//! verified, as hosts leave them to their cards. Formats and headers are read by this module and not by a library, since traces of long runs keep 64 or
//! 96 bytes of a frame: parsers of packets refuse a TCP header whose options are cut off, and the sequence number
//! counts; and since the place of a damage, in a stream of any length, is reported to the byte in all three formats.

mod analysis;
mod capture;
mod compression;
mod connection;
mod counts;
mod detail;
mod drawing;
mod edges;
mod erf;
mod fragments;
pub mod frames;
mod hash;
mod holes;
mod ids;
mod joined;
mod layers;
mod life;
mod losses;
mod p_streams;
mod pace;
pub mod packet;
mod pcap;
mod pcapng;
mod points;
mod recognise;
mod rtt;
mod segment;
mod series;
mod side;
mod tables;
mod timeline;
mod waits;
mod window;
mod writer;

pub use analysis::{Analysis, Options, Selection};
pub use capture::{Capture, Ending, Format, Interface, Link, Record, Stamp, TraceError};
pub use drawing::{DrawError, Drawing, Style};
pub use layers::dissect;
pub use packet::{Address, Dissected, Packet, Part, Transport};
pub use points::Choices;
pub use segment::Segment;
pub use tables::StreamOptions;
pub use timeline::{Happening, Timeline, Track};
pub use window::Order;
pub use writer::{Tap, Writer};
