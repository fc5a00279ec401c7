//! Any bytes as a file of users: lines of fault, or users that can be written and read again.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_config::fuzzing::htpasswd(data));
