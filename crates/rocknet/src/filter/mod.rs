//! Filters change responses.

pub mod encode;
