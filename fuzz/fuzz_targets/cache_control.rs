//! Parses any bytes as `Cache-Control` and as a targeted field.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_cache::fuzzing::cache_control(data));
