//! Parses any bytes as a unidirectional stream of HTTP/3: no panic, and the same result in every split.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::h3_unidirectional(data));
