//! The RockNet configuration: one table of keys, checked whole, with errors that teach.
#![forbid(unsafe_code)]

pub mod model;
