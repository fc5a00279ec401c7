//! Parses any text as a configuration: no panic, the result is findings or a model, and `fmt` is idempotent.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_config::fuzzing::config(data));
