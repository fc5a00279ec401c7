//! Parses any bytes as HTTP/2 frames, sent to a server or by an upstream: no panic, and the same events however the
//! bytes are split.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| rocknet_proto::fuzzing::h2_frames(data));
