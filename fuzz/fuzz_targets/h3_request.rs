//! Parses any bytes as a request stream of HTTP/3: no panic, and the same events however the bytes are split.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::h3_request(data));
