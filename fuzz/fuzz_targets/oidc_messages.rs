//! Parses any bytes as the messages of browsers and providers in a login: none passes as signed or sealed.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocknet_oidc::fuzzing::messages(data));
