//! Parses any bytes as a PROXY protocol header: no panic, the same client however the bytes are split, and no byte is
//! read beyond the header.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::proxy_protocol(data));
