//! Any bytes as an `Authorization` field: nothing, or a user and a password within their bounds.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_access::fuzzing::credentials(data));
