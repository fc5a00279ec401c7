//! HTTP/2 protocol engine for servers: parses received bytes into events and encodes frames to send (RFC 9113).

mod budget;
mod connection;
mod error;
mod flow;
pub(crate) mod frame;
mod head;
pub(crate) mod hpack;
mod prepared;
mod priority;
mod response_validator;
mod scheduler;
mod settings;
mod stream;
mod streams;
pub mod upgrade;

pub use crate::h1::EncodeError;
pub(crate) use budget::Budget;
pub use budget::Flood;
pub(crate) use connection::check_fields;
pub use connection::{
    BodyDelivery, CONNECTION_WINDOW, Config, ConnectionEvent, DataGrant, MAX_STREAMS, PREFACE, PushRequest,
    ReceivedEvent, STREAM_WINDOW, SendError, ServerConnection,
};
pub use error::{ConnectionError, ErrorCode, Malformed, StreamError};
pub use frame::HEADER_SIZE as FRAME_HEADER_SIZE;
pub use head::DecodedHead;
pub(crate) use head::{BlockKind, RequestHeadError};
pub use hpack::HpackError;
pub use prepared::{DATE_SIZE, PreparedHead};
pub(crate) use prepared::{check_field, digits};
pub use priority::{Priority, URGENCY_LEVELS};
pub use response_validator::{OutOfSync, ResponseValidator};
pub use streams::StreamId;
