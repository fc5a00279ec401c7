//! Parses any bytes as a file of users: errors with their lines, or users that can be written and read back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_config::fuzzing::htpasswd(data));
