//! Parses any bytes as a response to a client: no panic, and the same events in every split.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::h1_response(data));
