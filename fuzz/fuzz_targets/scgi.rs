//! Variables of any bytes, encoded by SCGI: refused, or read back unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::scgi(data));
