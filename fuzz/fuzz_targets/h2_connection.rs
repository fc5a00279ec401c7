//! Any bytes, turned into mostly valid HTTP/2 frames.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::h2_connection(data));
