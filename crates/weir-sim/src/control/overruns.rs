//! Inputs of switches that lose frames after a queue behind them was full.

use weir_core::queue::Overrun;
use weir_core::rng::Stream;
use weir_core::spec;

/// The inputs before a queue that lose frames, together.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// The ports that lead to them.
    pub(crate) ports: Vec<u32>,
    pub(crate) overrun: Overrun,
}

impl Inputs {
    pub(crate) fn new(spec: &spec::Overrun, stream: Stream) -> Inputs {
        Inputs { ports: spec.inputs.clone(), overrun: Overrun::new(spec, stream) }
    }

    /// The queue had no room for a frame.
    pub(crate) fn overflowed(&mut self) {
        self.overrun.overflowed();
    }
}
