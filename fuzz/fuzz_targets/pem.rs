//! Any bytes as a file of certificates and keys: a usable pair, or an error, never a panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    rocknet::certificates::files::read_any(data);
});
