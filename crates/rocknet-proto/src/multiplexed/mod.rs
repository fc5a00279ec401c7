//! Parts that HTTP/2 and HTTP/3 share: both send compressed heads on the streams of one connection.

mod budget;
mod head;
mod malformed;
mod priority;
mod response_fields;
mod send_error;

pub(crate) use budget::Budget;
pub use budget::Flood;
pub use head::DecodedHead;
pub(crate) use head::{BlockKind, RequestHeadError};
pub use malformed::Malformed;
pub use priority::{Priority, URGENCY_LEVELS};
pub use response_fields::DATE_SIZE;
pub(crate) use response_fields::{CheckedFields, check_field, check_fields, digits};
pub use send_error::SendError;
