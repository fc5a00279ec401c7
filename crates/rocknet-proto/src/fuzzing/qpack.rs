//! QPACK codec of one connection, for fuzz targets and for comparisons with another implementation.

use std::mem;

use super::field_collector::{FieldCollector, OwnedField};
use crate::limits::Limits;
use crate::multiplexed::{BlockKind, DecodedHead};
use crate::qpack::{Decoder, Encoder, QpackError, SectionOutcome};

/// Decoder and encoder of one connection.
#[derive(Debug)]
pub struct Qpack {
    decoder: Decoder,
    encoder: Encoder,
}

/// Result of [`Qpack::decode`].
#[derive(Debug, PartialEq, Eq)]
pub enum QpackSection {
    /// The fields, at most 256.
    Fields(Vec<OwnedField>),
    /// The section refers to entries of the dynamic table that have not been received.
    Blocked,
}

impl Qpack {
    /// Creates a decoder whose peer may use a dynamic table of `capacity` bytes, at most 65,535, and may block
    /// `blocked_streams` streams. The encoder uses no dynamic table yet.
    pub fn new(capacity: usize, blocked_streams: usize) -> Qpack {
        Qpack {
            decoder: Decoder::new(capacity, blocked_streams),
            encoder: Encoder::new(),
        }
    }

    /// Sets the table capacity in bytes and the number of blocked streams that the peer's decoder permits. Must be
    /// called at most once, because a peer sends its settings once (RFC 9114 §7.2.4).
    pub fn set_peer_settings(&mut self, capacity: u64, blocked_streams: u64) {
        self.encoder.set_client_settings(capacity, blocked_streams);
    }

    /// Receives bytes of the peer's encoder stream.
    ///
    /// # Errors
    ///
    /// Fails if an instruction is invalid.
    pub fn receive_encoder_stream(&mut self, bytes: &[u8]) -> Result<(), QpackError> {
        self.decoder.receive_instructions(bytes).map(drop)
    }

    /// Receives bytes of the peer's decoder stream.
    ///
    /// # Errors
    ///
    /// Fails if an instruction is invalid.
    pub fn receive_decoder_stream(&mut self, bytes: &[u8]) -> Result<(), QpackError> {
        self.encoder.receive_instructions(bytes).map(drop)
    }

    /// Decodes a field section of a stream. A section that is blocked has to be passed again after further bytes of the
    /// encoder stream.
    ///
    /// # Errors
    ///
    /// Fails if the section is invalid, or if more streams are blocked than permitted.
    pub fn decode(&mut self, stream: u64, section: &[u8]) -> Result<QpackSection, QpackError> {
        let mut found = FieldCollector::default();
        Ok(match self.decoder.decode(stream, section, &mut found)? {
            SectionOutcome::Decoded => QpackSection::Fields(found.fields),
            SectionOutcome::Blocked => QpackSection::Blocked,
        })
    }

    /// Abandons a stream whose section is blocked.
    pub fn cancel(&mut self, stream: u64) {
        self.decoder.cancel(stream);
    }

    /// Encodes fields to a section of a stream.
    pub fn encode(&mut self, stream: u64, fields: &[OwnedField]) -> Vec<u8> {
        let mut out = Vec::new();
        let fields = fields.iter().map(|(name, value)| (&name[..], &value[..]));
        self.encoder.encode(stream, fields, &mut out);
        out
    }

    /// Returns the bytes to send on the encoder stream.
    pub fn take_encoder_stream(&mut self) -> Vec<u8> {
        mem::take(self.encoder.output())
    }

    /// Returns the bytes to send on the decoder stream.
    pub fn take_decoder_stream(&mut self) -> Vec<u8> {
        mem::take(self.decoder.output())
    }
}

/// Receives messages of arbitrary bytes. The first byte of each message encodes its kind and length, and the bytes of
/// the message follow. Checks that nothing panics and that memory stays bounded.
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
