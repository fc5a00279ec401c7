//! Errors in integers and strings, independent of the stream on which they occur.

/// Error in an integer or a string. The reader of each stream maps it to an error of that stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReadError {
    /// More bytes are needed.
    Incomplete,
    /// The integer has more than 62 bits.
    IntegerTooLarge,
    /// The decoded string would exceed its limit.
    StringTooLong,
    /// The coded string contains EOS or has invalid padding.
    Huffman,
}
