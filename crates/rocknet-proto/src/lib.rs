//! HTTP wire bytes to meaning and back.
//!
//! It never opens a socket, reads a clock or asks a runtime: bytes, time and randomness are arguments.
#![forbid(unsafe_code)]

pub mod semantics;
