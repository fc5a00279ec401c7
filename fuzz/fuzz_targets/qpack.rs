//! Parses any bytes as instructions and field sections of QPACK: no panic, and bounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::qpack(data));
