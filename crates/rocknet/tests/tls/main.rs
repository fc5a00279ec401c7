//! HTTPS over real sockets: handshakes, names, certificates in files, and those who mean no good.

#[path = "../server/support/mod.rs"]
#[allow(dead_code, reason = "shared with the tests of the server in the clear")]
mod support;

mod certs;
mod client;

mod abuse;
mod controllers;
mod files;
mod handshakes;
mod hellos;
mod hosts;
mod php;
mod transfer;
mod upstreams;
