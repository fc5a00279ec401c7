//! Instructions of the decoder stream, which acknowledge sections and insertions (RFC 9204 §4.4).

use super::read_error::ReadError;
use super::{QpackError, integer};

/// Instruction of a decoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DecoderInstruction {
    /// Section Acknowledgment, with the stream of the section.
    Acknowledge(u64),
    /// Stream Cancellation, with the stream.
    Cancel(u64),
    /// Insert Count Increment, with the number of entries.
    Increment(u64),
}

impl DecoderInstruction {
    /// Reads the instruction at the start of `bytes`. Returns the instruction and its length; `None` if it is
    /// incomplete.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, QpackError> {
        let first = bytes.first().copied().unwrap_or_default();
        let (instruction, prefix): (fn(u64) -> Self, u32) = match first >> 6 {
            0b10 | 0b11 => (Self::Acknowledge, 7),
            0b01 => (Self::Cancel, 6),
            _ => (Self::Increment, 6),
        };
        match integer::decode(bytes, 0, prefix) {
            Ok((number, length)) => Ok(Some((instruction(number), length))),
            Err(ReadError::Incomplete) => Ok(None),
            Err(_) => Err(QpackError::FeedbackInteger),
        }
    }

    /// Appends the instruction.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Acknowledge(stream) => integer::encode(stream, 7, 0x80, out),
            Self::Cancel(stream) => integer::encode(stream, 6, 0x40, out),
            Self::Increment(entries) => integer::encode(entries, 6, 0, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_read_back() {
        for number in [0, 1, 62, 63, 64, 126, 127, 128, integer::MAX] {
            for instruction in [
                DecoderInstruction::Acknowledge(number),
                DecoderInstruction::Cancel(number),
                DecoderInstruction::Increment(number),
            ] {
                let mut bytes = Vec::new();
                instruction.write(&mut bytes);
                assert_eq!(DecoderInstruction::read(&bytes), Ok(Some((instruction, bytes.len()))));
                for cut in 0..bytes.len() {
                    assert_eq!(DecoderInstruction::read(&bytes[..cut]), Ok(None));
                }
            }
        }
        assert_eq!(DecoderInstruction::read(&[0xff; 12]), Err(QpackError::FeedbackInteger));
    }
}
