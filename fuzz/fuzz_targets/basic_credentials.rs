//! Parses any bytes as an `Authorization` field: no credentials, or a user and a password within their limits.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_access::fuzzing::credentials(data));
