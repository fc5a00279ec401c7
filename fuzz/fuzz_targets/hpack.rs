//! Decodes any bytes as field blocks: no panic, bounded tables, and decoded fields survive encoding and decoding.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::hpack(data));
