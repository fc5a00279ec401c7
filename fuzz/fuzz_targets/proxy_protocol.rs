//! Any bytes as the beginning of a balancer's connection: no panic, the same client in every split, no byte too many.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::proxy_protocol(data));
