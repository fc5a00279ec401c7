//! HTTP wire bytes to meaning and back.
//!
//! It never opens a socket, reads a clock or asks a runtime: bytes, time and randomness are arguments.
#![forbid(unsafe_code)]

mod bytes;
pub mod cgi;
mod decimal;
pub mod dns;
pub mod fastcgi;
pub mod fields;
#[doc(hidden)]
pub mod fuzzing;
pub mod h1;
pub mod h2;
pub mod limits;
pub mod method;
pub mod prepared;
pub mod proxy_protocol;
pub mod refusal;
pub mod request;
pub mod response;
pub mod scgi;
pub mod semantics;
pub mod status;
pub mod uwsgi;

/// Request head that was decoded into a buffer of its own, where the version compresses heads.
pub use h2::DecodedHead;

pub use fields::{Field, FieldIndex, Fields, Known, KnownSet, Span};
pub use limits::Limits;
pub use method::Method;
pub use prepared::PreparedHeads;
pub use request::{OwnedRequest, Request, RequestIndex, TargetForm, Version};
pub use response::{Response, ResponseIndex};
pub use status::Status;
