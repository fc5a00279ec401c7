//! Turns any bytes into mostly valid HTTP/2 frames and parses them: no panic, and the same events however the bytes are
//! split.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::h2_connection(data));
