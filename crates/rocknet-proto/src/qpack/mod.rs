//! QPACK: header compression for HTTP/3, with a dynamic table that is updated on streams of its own (RFC 9204).

mod decoder;
mod decoder_stream;
mod encoder;
mod encoder_stream;
mod error;
mod field_line;
mod instruction_buffer;
mod integer;
mod prefix;
mod read_error;
mod references;
mod section_reader;
mod static_table;
mod string;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use decoder::{Decoder, SectionOutcome};
pub(crate) use encoder::Encoder;
pub use error::QpackError;
pub(crate) use error::QpackErrorClass;
pub(crate) use field_line::{STATIC_PREFIX, encode_static_field, encode_status};
