//! How a sender finds out that packets are lost whose headers do not say so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sleek::{Sleek, SleekConfig};
use crate::cc::Path;
use crate::error::SpecError;

/// What tells a sender with [`Recovery::Selective`](super::Recovery::Selective) that a packet is lost, besides its header and the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LossDetection")]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Detection {
    /// Nothing.
    Timeout {},
    /// A packet has arrived that was sent behind it.
    Overtaken {
        /// So many behind it, or more.
        packets: u32,
    },
    /// See [`Sleek`].
    Sleek(SleekConfig),
}

/// The state of a detection.
#[derive(Clone, Debug)]
pub(super) enum Detector {
    Timeout,
    Overtaken(Overtaken),
    Sleek(Box<Sleek>),
}

/// Packets are lost that one overtook which was sent so many `behind` them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overtaken {
    behind: u64,
    /// All before it were looked at: each is once.
    looked: u64,
}

impl Detection {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        match self {
            Detection::Overtaken { packets: 0 } => Err(SpecError::new("/packets", "1 or more (got 0)")),
            Detection::Timeout {} | Detection::Overtaken { .. } => Ok(()),
            Detection::Sleek(config) => config.check(),
        }
    }
}

impl Detector {
    pub(super) fn new(detection: Detection, path: &Path) -> Detector {
        match detection {
            Detection::Timeout {} => Detector::Timeout,
            Detection::Overtaken { packets } => Detector::Overtaken(Overtaken { behind: packets.into(), looked: 0 }),
            Detection::Sleek(config) => Detector::Sleek(Box::new(Sleek::new(config, path))),
        }
    }

    pub(super) fn sleek(&mut self) -> Option<&mut Sleek> {
        if let Detector::Sleek(sleek) = self { Some(sleek) } else { None }
    }

    /// Whether what is lost is sent again whatever the window.
    #[inline]
    pub(super) fn is_recovering(&self) -> bool {
        matches!(self, Detector::Sleek(sleek) if sleek.is_recovering())
    }
}

impl Overtaken {
    /// What packet `highest`, the last that has arrived, has overtaken and is not known to have arrived from `base` on.
    pub(super) fn find(&mut self, base: u64, highest: u64) -> std::ops::Range<u64> {
        let end = (highest + 1).saturating_sub(self.behind);
        let range = self.looked.max(base)..end;
        self.looked = self.looked.max(end);
        range
    }
}
