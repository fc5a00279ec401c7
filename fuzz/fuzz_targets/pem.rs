//! Parses any bytes as a file of certificates and keys: no panic, and the result is a usable pair or an error.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    rocknet::certificates::files::read_any(data);
});
