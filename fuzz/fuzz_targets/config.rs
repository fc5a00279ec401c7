//! Any text as a configuration: findings or a model, never a panic, and `fmt` is idempotent.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_config::fuzzing::config(data));
