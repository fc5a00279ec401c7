//! Reads a length from the first eight bytes and parses the other bytes as a `Range` value: the ranges lie within the
//! length and do not overlap.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_proto::semantics::fuzzing::range(data));
