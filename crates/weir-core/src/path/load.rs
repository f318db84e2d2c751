//! What is sent over a path, as it crosses the boundary from Python: a bulk transfer, echo requests, or both.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::LineSpec;
use crate::cc::{Controllers, Setup};
use crate::check::parse;
use crate::error::{Part, SpecError, refuse};
use crate::tcp;
use crate::units::{Bytes, Span};

/// Most connections of a transfer.
pub(crate) const MAX_STREAMS: u32 = 4096;

/// A path between two ends, near and far, and what is sent over it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadedPath {
    /// From the near end to the far one.
    pub hops: Vec<HopSpec>,
    /// TCP connections that carry as much as they can.
    pub transfer: Option<TransferSpec>,
    /// Echo requests.
    pub probe: Option<ProbeSpec>,
    /// How long the transfer writes, from when all of its connections are open.
    pub duration_ps: Span,
}

/// A part of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HopSpec {
    /// From near to far.
    pub forward: LineSpec,
    /// From far to near.
    pub backward: LineSpec,
    /// Whether connections over it cannot scale their windows.
    pub strips_window_scale: bool,
}

/// A bulk transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferSpec {
    /// Whether data goes from near to far.
    pub forward: bool,
    /// Number of connections.
    pub streams: u32,
    /// Settings of each.
    pub config: tcp::Config,
    /// How often their state is written down.
    pub every_ps: Span,
}

/// Echo requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// Whether requests go from near to far.
    pub forward: bool,
    /// How many.
    pub count: u32,
    /// Time between them; the first goes at the start.
    pub every_ps: Span,
    /// Payload of a request and of its reply.
    pub payload_bytes: Bytes,
    /// A reply that is later counts as lost.
    pub timeout_ps: Span,
}

impl LoadedPath {
    /// Reads a path from JSON and checks it.
    ///
    /// # Errors
    /// JSON that is no path, or a path that is not legal.
    pub fn from_json(text: &str) -> Result<LoadedPath, SpecError> {
        let spec: LoadedPath = parse(text)?;
        spec.check()?;
        Ok(spec)
    }

    /// Checks what no type can express.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), SpecError> {
        refuse!(self.hops.is_empty(), "/hops", "a path has at least one hop");
        for (i, hop) in self.hops.iter().enumerate() {
            for (name, line) in [("forward", &hop.forward), ("backward", &hop.backward)] {
                line.check().under(format_args!("/hops/{i}/{name}"))?;
            }
        }
        if let Some(transfer) = &self.transfer {
            if !(1..=MAX_STREAMS).contains(&transfer.streams) {
                let message = format!("1 to {MAX_STREAMS} connections (got {})", transfer.streams);
                return Err(SpecError::new("/transfer/streams", message));
            }
            positive("/transfer/every_ps", transfer.every_ps)?;
            transfer.config.check().under("/transfer/config")?;
            let made = Controllers::new().make(Setup::plain(&transfer.config));
            made.under("/transfer/config/congestion_control")?;
        }
        if let Some(probe) = &self.probe {
            positive("/probe/every_ps", probe.every_ps)?;
            if probe.payload_bytes > MAX_PAYLOAD {
                let message = format!("at most {MAX_PAYLOAD} of payload (got {})", probe.payload_bytes);
                return Err(SpecError::new("/probe/payload_bytes", message));
            }
        }
        positive("/duration_ps", self.duration_ps)
    }
}

/// What an IPv4 packet holds besides its header and that of ICMP.
const MAX_PAYLOAD: Bytes = Bytes::new(65_535 - 28);

fn positive(at: &str, span: Span) -> Result<(), SpecError> {
    if span > Span::ZERO { Ok(()) } else { Err(SpecError::new(at, "a time above 0 s")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> LoadedPath {
        let line = LineSpec::transparent();
        let hop = HopSpec { forward: line.clone(), backward: line, strips_window_scale: false };
        let probe = ProbeSpec {
            forward: true,
            count: 3,
            every_ps: Span::from_ms(1),
            payload_bytes: Bytes::new(56),
            timeout_ps: Span::from_ms(9),
        };
        LoadedPath { hops: vec![hop], transfer: None, probe: Some(probe), duration_ps: Span::from_ms(5) }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        let wrong = |change: fn(&mut LoadedPath)| {
            let mut spec = example();
            change(&mut spec);
            spec.check().expect_err("it makes no sense").pointer
        };
        assert_eq!(wrong(|spec| spec.hops.clear()), "/hops");
        assert_eq!(wrong(|spec| spec.hops[0].backward.lanes = 0), "/hops/0/backward/lanes");
        assert_eq!(wrong(|spec| spec.duration_ps = Span::ZERO), "/duration_ps");
        assert_eq!(
            wrong(|spec| spec.probe.iter_mut().for_each(|probe| probe.every_ps = Span::ZERO)),
            "/probe/every_ps"
        );
        assert_eq!(
            wrong(|spec| spec.probe.iter_mut().for_each(|probe| probe.payload_bytes = Bytes::new(65_508))),
            "/probe/payload_bytes"
        );
    }

    #[test]
    fn a_path_is_the_same_after_a_trip_through_json() {
        let json = serde_json::to_string(&example()).expect("a path has text keys only");
        assert_eq!(LoadedPath::from_json(&json), Ok(example()));
    }
}
