//! No congestion control: a window that does not change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::{Allowance, CongestionControl, Needs, SenderEvent, Settings, Setup};
use crate::units::{Bytes, Time};

/// Settings of [`LineRate`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LineRateConfig {}

impl Settings for LineRateConfig {
    type Control = LineRate;
    const PRESET: Option<fn() -> Self> = Some(Self::default);
    const PACKETS: bool = true;
    const WINDOW: bool = false;

    fn make(&self, _: Setup<'_>) -> LineRate {
        LineRate
    }
}

/// Whatever the line takes; the settings of the transport, a receiver's credit or the adapter bound it.
#[derive(Clone, Copy, Debug)]
pub struct LineRate;

impl CongestionControl for LineRate {
    fn on_event(&mut self, _: Time, _: &SenderEvent) {}

    fn allowance(&self) -> Allowance {
        Allowance::of_window(Bytes::new(u64::MAX), Bytes::new(u64::MAX))
    }

    fn needs(&self) -> Needs {
        Needs { packets: true, ..Needs::PLAIN }
    }
}
