//! The only modules that know an HTTP version.

pub mod deadlines;
mod facts;
pub mod h1;
pub mod h2;
mod record;
mod refused;
