//! HTTP/3 protocol engine for servers: parses the bytes of streams into events and encodes frames to send (RFC 9114).

mod connection;
mod error;
mod frame;
mod hq;
mod prepared;
mod settings;
mod stream;
mod unidirectional;
mod varint;

pub use crate::multiplexed::{Priority, SendError, URGENCY_LEVELS};
pub use crate::qpack::QpackError;
pub use connection::{Config, ConnectionEvent, MAX_STREAMS, ReceivedEvent, ServerConnection};
pub use error::{ConnectionError, ErrorCode, StreamError};
pub use hq::{HqBody, HqReceived, HqRequest};
pub use prepared::PreparedHead;
pub use stream::StreamId;
pub use unidirectional::{Critical, UnidirectionalAction};
