//! Parts of the test of edits: random numbers, the parts of a file, and the model with a real server.

pub mod config;
pub mod driver;
pub mod random;
