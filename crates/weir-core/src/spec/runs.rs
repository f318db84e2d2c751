//! Ids as they stand in JSON: one by one, or the first and the last of a run of them. 2048 hosts that send to
//! all others list four million receivers, in four thousand runs.

use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serializer};

use crate::check::MAX_FLOWS;

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    One(u32),
    Run([u32; 2]),
}

/// Writes runs of at least three ids as pairs.
pub(super) fn serialize<S: Serializer>(ids: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
    let mut entries = serializer.serialize_seq(None)?;
    for run in ids.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
        if let [first, _, .., last] = run {
            entries.serialize_element(&[first, last])?;
        } else {
            run.iter().try_for_each(|id| entries.serialize_element(id))?;
        }
    }
    entries.end()
}

/// Reads ids and runs of them.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    struct Ids;

    impl<'de> Visitor<'de> for Ids {
        type Value = Vec<u32>;

        fn expecting(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
            formatter.write_str("a list of ids, or of pairs of a first and a last id")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<u32>, A::Error> {
            let mut ids = Vec::new();
            while let Some(entry) = entries.next_element()? {
                let [first, last] = match entry {
                    Entry::One(id) => [id, id],
                    Entry::Run(ends) => ends,
                };
                if last < first {
                    return Err(A::Error::custom(format!("a run of ids cannot go from {first} to {last}")));
                }
                if ids.len() as u64 + u64::from(last - first) >= MAX_FLOWS {
                    return Err(A::Error::custom(format!("more than {MAX_FLOWS} ids (the last run ends at {last})")));
                }
                ids.extend(first..=last);
            }
            Ok(ids)
        }
    }

    deserializer.deserialize_seq(Ids)
}
