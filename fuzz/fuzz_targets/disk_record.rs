//! Parses any bytes as a record of the responses on disk.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_cache::fuzzing::disk_record(data));
