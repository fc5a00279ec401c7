//! Encodes the kind and index of an operation as `user_data`, which the kernel returns with each completion.

/// Kind of an operation, in the lower bits of `user_data`; the higher bits contain the index of a connection slot or
/// file operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationKind {
    /// Receives data of a slot, or waits for data.
    Receive = 0,
    /// Waits until the socket of a slot has room.
    Writable = 1,
    /// Waits for an event of the runtime's epoll instance. The index is 0.
    Epoll = 2,
    /// Cancels the receive operation of a slot.
    CancelReceive = 3,
    /// Cancels the wait of a slot for room in its socket.
    CancelWritable = 4,
    /// Sends a batched write of a slot.
    Send = 5,
    /// Reads a file or looks a path up. The index is that of the file operation.
    FileOperation = 6,
}

/// All kinds, each at the index that is its number.
const ALL_KINDS: [OperationKind; 7] = [
    OperationKind::Receive,
    OperationKind::Writable,
    OperationKind::Epoll,
    OperationKind::CancelReceive,
    OperationKind::CancelWritable,
    OperationKind::Send,
    OperationKind::FileOperation,
];
/// Number of bits that contain the kind: enough for 8 kinds.
const KIND_BITS: u32 = 3;

/// Packs a kind and an index.
pub(super) fn encode(kind: OperationKind, index: usize) -> u64 {
    (index as u64) << KIND_BITS | kind as u64
}

/// Unpacks a kind and an index; `None` if the number in the lower bits is not that of a kind.
pub(super) fn decode(user_data: u64) -> Option<(OperationKind, usize)> {
    let kind = ALL_KINDS.get((user_data & ((1 << KIND_BITS) - 1)) as usize)?;
    Some((*kind, (user_data >> KIND_BITS) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_reverses_encoding() {
        for kind in ALL_KINDS {
            for index in [0, 1, 100_000] {
                assert_eq!(decode(encode(kind, index)), Some((kind, index)));
            }
        }
        // No kind has the number 7.
        assert_eq!(decode(7), None);
    }
}
