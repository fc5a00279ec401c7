//! Automatic HTTPS against Pebble, the test CA of Let's Encrypt, and against CAs that misbehave.

mod crash;
mod pebble;
mod proofs;
mod refusals;
mod renewal;
mod scripted_ca;
mod site;
mod zone;
