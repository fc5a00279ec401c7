//! Any bytes as field blocks: no panic, bounded tables, and what is read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::hpack(data));
