//! Translates any text as a configuration of nginx, Apache and Caddy: no panic, and RockNet accepts each result.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_import::fuzzing::translate(data));
