//! Parses any bytes as the value of each field that has a parser: no panic, and consistent results.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_proto::semantics::fuzzing::field_value(data));
