//! Encodes variables of any bytes for SCGI: each is refused or is unchanged after decoding.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::scgi(data));
