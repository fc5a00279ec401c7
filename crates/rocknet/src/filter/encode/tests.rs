//! Tests of the filter that applies content codings.

mod bodies;
mod fields;
mod streams;
mod support;
