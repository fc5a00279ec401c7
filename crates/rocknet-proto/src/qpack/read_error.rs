//! Errors in integers and strings, before it is known which stream they are on.

/// Error in an integer or a string. The reader maps it to an error of its stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReadError {
    /// More bytes are needed.
    Incomplete,
    IntegerTooLarge,
    /// The string cannot fit its limit.
    StringTooLong,
    Huffman,
}
