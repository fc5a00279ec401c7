//! HTTP/2 protocol engine for servers: parses received bytes into events and encodes frames to send (RFC 9113). For
//! upstreams, it only validates the responses.

mod connection;
mod error;
mod flow;
pub(crate) mod frame;
mod prepared;
mod response_validator;
mod scheduler;
mod settings;
mod stream;
mod streams;
pub mod upgrade;

pub use crate::h1::EncodeError;
pub use crate::hpack::HpackError;
pub use crate::multiplexed::{DATE_SIZE, DecodedHead, Flood, Malformed, Priority, SendError, URGENCY_LEVELS};
pub use connection::{
    BodyDelivery, CONNECTION_WINDOW, Config, ConnectionEvent, DataGrant, MAX_STREAMS, PREFACE, PushRequest,
    ReceivedEvent, STREAM_WINDOW, ServerConnection,
};
pub use error::{ConnectionError, ErrorCode, StreamError};
pub use frame::HEADER_SIZE as FRAME_HEADER_SIZE;
pub use prepared::PreparedHead;
pub use response_validator::{OutOfSync, ResponseValidator};
pub use streams::StreamId;
