//! Parses any `Range` value for a length from the first eight bytes: ranges lie within the length and do not overlap.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_proto::semantics::fuzzing::range(data));
