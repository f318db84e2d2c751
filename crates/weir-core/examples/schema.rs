//! Prints the JSON schema of everything that crosses the boundary from Python, and what is known of congestion controls, for
//! `scripts/generate_spec.py`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use weir_core::cc;
use weir_core::path::LoadedPath;
use weir_core::spec::Spec;

/// All that is reported to the compiled core.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is asked for")]
struct Boundary {
    spec: Spec,
    loaded_path: LoadedPath,
}

fn main() {
    let schema = schemars::schema_for!(Boundary);
    let controllers: Vec<Value> = cc::Config::kinds()
        .into_iter()
        .map(|kind| {
            let packets = kind.preset.as_ref().is_some_and(cc::Config::counts_packets);
            json!({"name": kind.name, "about": kind.about, "ecn": kind.ecn, "preset": kind.preset, "packets": packets})
        })
        .collect();
    let whole = json!({"schema": schema, "controllers": controllers});
    println!("{}", serde_json::to_string_pretty(&whole).expect("it has text keys only"));
}
