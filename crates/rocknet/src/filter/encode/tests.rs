//! Tests of the filter.

mod bodies;
mod fields;
mod streams;
mod support;
