//! Variables made of any bytes, told by uwsgi: refused, or read again as they were.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::uwsgi(data));
