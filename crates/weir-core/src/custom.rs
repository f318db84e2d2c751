//! Parts that a program has besides those of this crate: how a spec names them, and what makes them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::SpecError;

/// A part that is not among those here, as it crosses the boundary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Custom {
    /// The name under which the program knows it.
    pub name: String,
    /// Its settings.
    pub settings: BTreeMap<String, f64>,
}

impl Custom {
    /// The part `name` with such settings.
    pub fn new(name: &str, settings: &[(&str, f64)]) -> Custom {
        let settings = settings.iter().map(|&(key, value)| (key.to_owned(), value)).collect();
        Custom { name: name.to_owned(), settings }
    }
}

/// What makes parts of a kind, by name.
pub(crate) struct Makers<F: ?Sized>(BTreeMap<String, Arc<F>>);

impl<F: ?Sized> Makers<F> {
    pub(crate) fn add(&mut self, name: &str, make: Arc<F>) {
        self.0.insert(name.to_owned(), make);
    }

    /// What makes `custom`, `kind` of the program.
    pub(crate) fn find(&self, custom: &Custom, kind: &str) -> Result<&F, SpecError> {
        self.0.get(&custom.name).map(Arc::as_ref).ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            SpecError::new("/name", format!("{kind} of this program: {known} (got {})", custom.name))
        })
    }
}

impl<F: ?Sized> Clone for Makers<F> {
    fn clone(&self) -> Makers<F> {
        Makers(self.0.clone())
    }
}

impl<F: ?Sized> Default for Makers<F> {
    fn default() -> Makers<F> {
        Makers(BTreeMap::new())
    }
}

impl<F: ?Sized> fmt::Debug for Makers<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
