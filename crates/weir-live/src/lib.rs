//! Under construction.
#![warn(missing_docs)]
