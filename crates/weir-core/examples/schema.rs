//! Prints the JSON schema of everything that crosses the boundary from Python, for `scripts/generate_spec.py`.

use schemars::JsonSchema;
use serde::Deserialize;
use weir_core::path::LoadedPath;
use weir_core::spec::Spec;

/// All that is told to the compiled core.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is asked for")]
struct Boundary {
    spec: Spec,
    loaded_path: LoadedPath,
}

fn main() {
    let schema = schemars::schema_for!(Boundary);
    println!("{}", serde_json::to_string_pretty(&schema).expect("it has text keys only"));
}
