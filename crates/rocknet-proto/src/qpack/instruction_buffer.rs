//! Splits the bytes of an instruction stream into instructions, which may arrive in pieces.

use super::QpackError;

/// Capacity in bytes that is kept between instructions. More is freed, so that one long instruction does not occupy
/// memory of an idle connection.
const MAX_SPARE_CAPACITY: usize = 512;

/// Incomplete instruction at the end of the bytes received. The function that is passed to `receive` bounds its length.
#[derive(Debug, Default)]
pub(super) struct InstructionBuffer {
    partial: Vec<u8>,
}

impl InstructionBuffer {
    pub(super) const fn new() -> Self {
        Self { partial: Vec::new() }
    }

    /// Calls `handle` with the unread bytes until no complete instruction is left. Each call handles the first
    /// instruction and returns its length, or `None` if more bytes are needed. Returns the number of instructions.
    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        mut handle: impl FnMut(&[u8]) -> Result<Option<usize>, QpackError>,
    ) -> Result<usize, QpackError> {
        let mut unread = std::mem::take(&mut self.partial);
        if unread.is_empty() {
            let (count, end) = handle_all(bytes, &mut handle)?;
            unread.extend_from_slice(bytes.get(end..).unwrap_or_default());
            self.partial = unread;
            return Ok(count);
        }
        unread.extend_from_slice(bytes);
        let (count, end) = handle_all(&unread, &mut handle)?;
        unread.drain(..end);
        if unread.is_empty() {
            unread.shrink_to(MAX_SPARE_CAPACITY);
        }
        self.partial = unread;
        Ok(count)
    }

    /// Returns the memory used, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.partial.capacity()
    }
}

/// Handles all complete instructions. Returns their number and the end of the last instruction.
fn handle_all(
    bytes: &[u8],
    handle: &mut impl FnMut(&[u8]) -> Result<Option<usize>, QpackError>,
) -> Result<(usize, usize), QpackError> {
    let (mut count, mut at) = (0, 0);
    while let Some(unread) = bytes.get(at..)
        && !unread.is_empty()
        && let Some(length) = handle(unread)?
    {
        count += 1;
        at += length;
    }
    Ok((count, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives instructions whose first byte is their length, and appends them to `found`. A length of 0 is an error.
    fn receive(buffer: &mut InstructionBuffer, bytes: &[u8], found: &mut Vec<Vec<u8>>) -> Result<usize, QpackError> {
        buffer.receive(bytes, |unread| {
            let length = usize::from(unread[0]);
            if length == 0 {
                return Err(QpackError::Increment);
            }
            let Some(instruction) = unread.get(..length) else {
                return Ok(None);
            };
            found.push(instruction.to_vec());
            Ok(Some(length))
        })
    }

    #[test]
    fn instructions_are_complete_in_any_pieces() {
        let bytes = [1, 3, 7, 7, 1, 2, 9, 4, 1, 1, 1, 1];
        for size in 1..=bytes.len() {
            let (mut buffer, mut found, mut count) = (InstructionBuffer::new(), Vec::new(), 0);
            for piece in bytes.chunks(size) {
                count += receive(&mut buffer, piece, &mut found).expect("valid instructions");
            }
            assert_eq!((count, found.concat().as_slice()), (6, bytes.as_slice()));
            assert!(buffer.partial.is_empty());
        }
        assert_eq!(
            receive(&mut InstructionBuffer::new(), &[1, 0], &mut Vec::new()),
            Err(QpackError::Increment)
        );
    }

    #[test]
    fn memory_of_a_large_instruction_is_freed() {
        let (mut buffer, mut found) = (InstructionBuffer::new(), Vec::new());
        let handle = |unread: &[u8]| Ok((unread.len() == 5000).then_some(5000));
        assert_eq!(buffer.receive(&[0; 4999], handle), Ok(0));
        assert!(buffer.memory() >= 4999);
        assert_eq!(buffer.receive(&[0; 1], handle), Ok(1));
        assert!(buffer.memory() <= MAX_SPARE_CAPACITY);
        assert_eq!(receive(&mut buffer, &[1], &mut found), Ok(1));
    }
}
