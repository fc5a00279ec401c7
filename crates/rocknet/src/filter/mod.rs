//! Filters change answers, in the order of their phases: errors get their pages, then fields are added.

pub mod errors;
pub mod headers;
