//! Reads any bytes as the tables of limits that a process passes to its successor.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_limit::fuzzing::limit_transfer(data));
