//! The only modules that know an HTTP version.

pub mod h1;
pub mod h2;
