//! Eight bytes of length and any `Range` value: ranges lie within the length and do not overlap.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_proto::semantics::fuzzing::range(data));
