//! HTTP/1.1 and 1.0 on the wire (RFC 9112), server and client role: bytes in, events out, and the other way round.

mod authority;
mod framing;
mod lines;
mod refusal;
mod request_head;

pub use framing::{Content, connection_options};
pub use refusal::{ChunkFault, FieldFault, FramingFault, Refusal};
