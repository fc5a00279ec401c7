//! Any bytes as a PROXY protocol header: no panic, the same client in every split, no byte beyond the header.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::proxy_protocol(data));
