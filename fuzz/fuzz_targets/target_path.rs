//! Parses any bytes as the path of a request: a `SafePath` never leaves its root.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_proto::semantics::fuzzing::target_path(data));
