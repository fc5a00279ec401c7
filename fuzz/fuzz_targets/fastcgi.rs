//! Parses any bytes as the records of a FastCGI application: no panic, and the same response however the bytes are
//! split.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::fastcgi(data));
