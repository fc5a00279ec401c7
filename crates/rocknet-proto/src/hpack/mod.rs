//! HPACK: header compression with indices into two tables and coded literals (RFC 7541).

mod decoder;
pub(crate) mod dynamic_table;
mod encoder;
pub(crate) mod huffman;
pub(crate) mod indexing;
pub(crate) mod integer;
mod name;
mod static_table;

pub(crate) use decoder::{Decoder, FieldSink};
pub(crate) use encoder::{Encoder, encode_field, encode_status};
pub(crate) use name::{NameClass, Pseudo, is_valid_value};

/// Error in a field block (RFC 9113 §4.3). The dynamic tables of the two sides differ from then on, so the connection
/// ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum HpackError {
    /// A field representation continues after the end of its block.
    Truncated,
    /// An integer exceeds every valid length and index (RFC 7541 §5.1).
    IntegerTooLarge,
    /// An index is in neither table (RFC 7541 §2.3.3).
    Index,
    /// The padding of a coded string is not a prefix of EOS, or is longer than seven bits (RFC 7541 §5.2).
    HuffmanPadding,
    /// A coded string contains EOS (RFC 7541 §5.2).
    HuffmanEos,
    /// A table size update exceeds the announced size (RFC 7541 §6.3).
    TableSize,
    /// A table size update follows the first field of a block, or is the third update of the block (RFC 7541 §4.2).
    MisplacedTableSize,
    /// A block has more fields than any legitimate head. Without this limit, one-byte references would expand to an
    /// unbounded amount of work.
    TooManyFields,
}

impl HpackError {
    /// Returns a phrase for logs. It contains no bytes from the client.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "a field block that ends within a field",
            Self::IntegerTooLarge => "an integer above the size limit in a field block",
            Self::Index => "an index outside both tables",
            Self::HuffmanPadding => "a coded string with invalid padding",
            Self::HuffmanEos => "a coded string that contains EOS",
            Self::TableSize => "a table size above the announced one",
            Self::MisplacedTableSize => "a misplaced table size update",
            Self::TooManyFields => "a field block with thousands of fields",
        }
    }
}
