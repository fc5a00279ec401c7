//! Any bytes as the value of each field that is read: no panic, and what is made of them agrees with itself.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_proto::semantics::fuzzing::field_value(data));
