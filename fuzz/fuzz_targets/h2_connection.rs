//! Any bytes as a program of HTTP/2 frames that mostly make sense.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::h2_connection(data));
