//! Parses any bytes as a response of an upstream: no panic, and the same events however the bytes are split.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::h1_response(data));
