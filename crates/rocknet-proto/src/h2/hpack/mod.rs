//! HPACK: fields as indices into two tables and as coded literals (RFC 7541).

mod decoder;
mod dynamic_table;
mod encoder;
mod huffman;
mod integer;
mod name;
mod static_table;

pub(crate) use decoder::{Decoder, FieldSink};
pub(crate) use encoder::{Encoder, encode_field, encode_status};
pub(crate) use name::{NameClass, Pseudo, is_valid_value};

/// Why a field block cannot be read. Both sides' tables differ from then on, so the connection ends (RFC 9113 §4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum HpackError {
    /// A representation that goes on behind the end of its block.
    Truncated,
    /// An integer that no length and no index can be.
    IntegerTooLarge,
    /// An index that neither table has (RFC 7541 §2.3.3).
    Index,
    /// Padding of a coded string that is not the beginning of EOS, or longer than seven bits (RFC 7541 §5.2).
    HuffmanPadding,
    /// EOS within a coded string.
    HuffmanEos,
    /// A table size above the one we allow (RFC 7541 §6.3).
    TableSize,
    /// A change of the table size behind the first field of a block, or a third one (RFC 7541 §4.2).
    MisplacedTableSize,
    /// More fields in one block than any head has: references of a byte each that unfold to more and more work.
    TooManyFields,
}

impl HpackError {
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "a field block that ends within a field",
            Self::IntegerTooLarge => "an integer of unheard-of size in a field block",
            Self::Index => "an index that no table has",
            Self::HuffmanPadding => "a coded string with wrong padding",
            Self::HuffmanEos => "a coded string with EOS within",
            Self::TableSize => "a table size above the agreed one",
            Self::MisplacedTableSize => "a change of the table size in the wrong place",
            Self::TooManyFields => "a field block with thousands of fields",
        }
    }
}
