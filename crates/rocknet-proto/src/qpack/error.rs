//! Errors of header compression: in field sections, on the encoder stream, and on the decoder stream.

/// Class of an error, which determines the code with which the connection is closed (RFC 9204 §6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum QpackErrorClass {
    /// Field section that cannot be decoded.
    Decompression,
    /// Section that would cost too much.
    Load,
    /// Error on the encoder stream.
    EncoderStream,
    /// Error on the decoder stream.
    DecoderStream,
}

/// Error in a field section or on a stream of QPACK (RFC 9204 §6). The connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum QpackError {
    /// The prefix or a field line continues after the end of the section.
    Truncated,
    /// An integer in a field section has more than 62 bits (RFC 9204 §4.1.1).
    IntegerTooLarge,
    /// An index in a field section is outside the static table (RFC 9204 §3.1).
    StaticIndex,
    /// A field section refers to an entry that was evicted, or that its insert count does not include (RFC 9204
    /// §2.2.3).
    DynamicIndex,
    /// A coded string in a field section contains EOS or has invalid padding (RFC 7541 §5.2).
    Huffman,
    /// No encoder produces this Required Insert Count (RFC 9204 §4.5.1.1).
    InsertCount,
    /// The Base of a field section is negative (RFC 9204 §4.5.1.2).
    Base,
    /// More streams are blocked than the server's settings allow (RFC 9204 §2.1.2).
    BlockedStreams,
    /// A section has more fields than any legitimate head. Without this limit, one-byte references would expand to an
    /// unbounded amount of work.
    TooManyFields,

    /// An integer on the encoder stream has more than 62 bits.
    InstructionInteger,
    /// An index on the encoder stream is in neither table (RFC 9204 §2.2.3, §3.1).
    InstructionIndex,
    /// A coded string on the encoder stream contains EOS or has invalid padding.
    InstructionHuffman,
    /// The client set a capacity above the announced capacity (RFC 9204 §4.3.1).
    TableCapacity,
    /// An inserted entry is larger than the capacity (RFC 9204 §3.2.2).
    EntryTooLarge,

    /// An integer on the decoder stream has more than 62 bits.
    FeedbackInteger,
    /// The client acknowledged a section that was never sent or that was already acknowledged (RFC 9204 §4.4.1).
    Acknowledgment,
    /// An Insert Count Increment is 0, or exceeds the number of entries sent (RFC 9204 §4.4.3).
    Increment,
}

impl QpackError {
    /// Returns the class of the error.
    pub(crate) const fn class(self) -> QpackErrorClass {
        match self {
            Self::Truncated
            | Self::IntegerTooLarge
            | Self::StaticIndex
            | Self::DynamicIndex
            | Self::Huffman
            | Self::InsertCount
            | Self::Base
            | Self::BlockedStreams => QpackErrorClass::Decompression,
            Self::TooManyFields => QpackErrorClass::Load,
            Self::InstructionInteger
            | Self::InstructionIndex
            | Self::InstructionHuffman
            | Self::TableCapacity
            | Self::EntryTooLarge => QpackErrorClass::EncoderStream,
            Self::FeedbackInteger | Self::Acknowledgment | Self::Increment => QpackErrorClass::DecoderStream,
        }
    }

    /// Returns a phrase for logs. It contains no bytes from the client.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "a field section that ends within its prefix or a field line",
            Self::IntegerTooLarge => "an integer above the size limit in a field section",
            Self::StaticIndex => "an index outside the static table in a field section",
            Self::DynamicIndex => "a reference to a missing entry of the dynamic table",
            Self::Huffman => "an invalid coded string in a field section",
            Self::InsertCount => "an impossible insert count of a field section",
            Self::Base => "a negative base of a field section",
            Self::BlockedStreams => "more blocked streams than announced",
            Self::TooManyFields => "a field section with thousands of fields",
            Self::InstructionInteger => "an integer above the size limit on the encoder stream",
            Self::InstructionIndex => "an index outside both tables on the encoder stream",
            Self::InstructionHuffman => "an invalid coded string on the encoder stream",
            Self::TableCapacity => "a table capacity above the announced one",
            Self::EntryTooLarge => "an entry larger than the dynamic table",
            Self::FeedbackInteger => "an integer above the size limit on the decoder stream",
            Self::Acknowledgment => "an acknowledgment of a field section that was not sent or already acknowledged",
            Self::Increment => "an invalid increment of the insert count",
        }
    }
}
