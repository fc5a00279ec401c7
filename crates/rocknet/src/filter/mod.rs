//! Filters change responses.

pub mod encode;
pub mod headers;
