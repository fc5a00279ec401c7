//! Any bytes as the answer of a program or an application: no panic, and the same head in every split.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::cgi_head(data));
