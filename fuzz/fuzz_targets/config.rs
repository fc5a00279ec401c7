//! Any text as a configuration: findings or a model, never a panic; what `fmt` makes stays as it is.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_config::fuzzing::config(data));
