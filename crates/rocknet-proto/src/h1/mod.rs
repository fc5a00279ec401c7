//! HTTP/1.1 and 1.0 (RFC 9112), in the roles of server and client: parses bytes into events and encodes messages.

pub(crate) mod authority;
pub(crate) mod body_reader;
mod body_writer;
mod client;
mod encode;
pub(crate) mod framing;
mod lines;
mod prepared;
mod request_head;
mod response_error;
mod response_head;
mod server;

pub use crate::refusal::{ChunkError, FieldError, FramingError, Refusal};
pub use body_reader::is_allowed_trailer;
pub use client::{ClientConnection, ClientEvent, MAX_INTERIM, RequestLine, ResponseBodyFraming};
pub use encode::{
    CHUNK_END, CONTINUE, ConnectionField, EncodeError, Framing, LAST_CHUNK, Length, chunk_head, decimal,
    encode_dated_head, encode_head, encode_trailers,
};
pub use framing::{BodyFraming, connection_options};
pub use prepared::PreparedHead;
pub use response_error::ResponseError;
pub use server::{AfterResponse, ServerConnection, ServerEvent};
