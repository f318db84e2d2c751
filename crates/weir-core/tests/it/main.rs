//! Public laws of the core models.
mod units;
