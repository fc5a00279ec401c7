//! Any bytes as a file of certificates and keys: a pair that serves, or a fault, never a panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    rocknet::certificates::files::read_any(data);
});
