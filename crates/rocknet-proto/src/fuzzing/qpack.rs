//! Passes instructions and field sections of any bytes to a QPACK decoder.

use crate::limits::Limits;
use crate::multiplexed::{BlockKind, DecodedHead};
use crate::qpack::{Decoder, Encoder};

/// Receives messages of any bytes. The first byte of each message encodes its kind and length, and the bytes of the
/// message follow. Checks that nothing panics and that memory stays bounded.
pub(super) fn messages(mut data: &[u8]) {
    // Both tables have at most 256 bytes, and at most two streams may be blocked.
    let (mut decoder, mut encoder) = (Decoder::new(256, 2), Encoder::new());
    encoder.set_client_settings(256, 2);
    let (limits, mut head) = (Limits::default(), DecodedHead::default());
    let mut stream = 0;
    while let Some((&first, rest)) = data.split_first() {
        let (message, rest) = rest.split_at(rest.len().min(usize::from(first & 0x3f)));
        data = rest;
        // The IDs of request streams are multiples of 4 (RFC 9000 §2.1).
        stream += 4;
        let is_over = match first >> 6 {
            0 => decoder.receive_instructions(message).is_err(),
            1 => {
                let mut sink = head.begin(&limits, BlockKind::Request);
                decoder.decode(stream, message, &mut sink).is_err()
            }
            2 => encoder.receive_instructions(message).is_err(),
            _ => {
                let (name, value) = message.split_at(message.len() / 2);
                let name: Vec<u8> = name.iter().map(|byte| b'a' + byte % 26).collect();
                encoder.encode(stream, [(&name[..], value)], &mut Vec::new());
                false
            }
        };
        assert!(decoder.memory() + encoder.memory() < 64 * 1024, "memory is bounded");
        decoder.output().clear();
        encoder.output().clear();
        if is_over {
            return;
        }
    }
}
