//! Parses any bytes as the response of a CGI program: no panic, and the same head however the bytes are split.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::cgi_head(data));
