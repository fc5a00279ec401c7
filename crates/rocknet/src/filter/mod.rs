//! Filters change responses.

pub mod headers;
