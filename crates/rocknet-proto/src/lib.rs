//! Parsers and encoders of HTTP and of the protocols around it: DNS, PROXY protocol, CGI, FastCGI, SCGI and uwsgi.
//!
//! The crate never opens a socket, reads a clock or needs a runtime: bytes, time and randomness are arguments. The
//! HTTP/1 parsers copy nothing. They fill an index of byte positions ([`RequestIndex`], [`ResponseIndex`]), and a view
//! combines the index with the bytes.
//!
//! # Example
//!
//! A server parses a request and encodes the response:
//!
//! ```
//! use rocknet_proto::h1::{AfterResponse, BodyFraming, Length, ServerConnection, ServerEvent, encode_head};
//! use rocknet_proto::{Limits, RequestIndex, Status};
//!
//! let (mut connection, mut index) = (ServerConnection::new(), RequestIndex::default());
//! let unread = b"GET /hello?x HTTP/1.1\r\nHost: example.com\r\n\r\n";
//! let event = connection.receive(&Limits::default(), unread, &mut index);
//! assert_eq!(event, Ok(ServerEvent::Request { consumed: unread.len(), body: BodyFraming::None }));
//! let request = index.view(unread);
//! assert_eq!((request.path, request.authority), (&b"/hello"[..], &b"example.com"[..]));
//!
//! let mut out = Vec::new();
//! // The last argument is true to close the connection after the response.
//! let framing = connection.respond(Status::OK, Length::Exact(2), false);
//! encode_head(&mut out, framing, Status::OK, [(&b"Content-Type"[..], &b"text/plain"[..])])?;
//! connection.encode_data(b"hi", &mut out)?;
//! assert_eq!(connection.finish(&mut out), AfterResponse::KeepAlive);
//! assert_eq!(out, b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi");
//! # Ok::<(), rocknet_proto::h1::EncodeError>(())
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]

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
pub mod h3;
mod hpack;
pub mod limits;
pub mod method;
mod multiplexed;
pub mod prepared;
pub mod proxy_protocol;
mod qpack;
pub mod refusal;
pub mod request;
pub mod response;
pub mod scgi;
pub mod semantics;
pub mod status;
pub mod uwsgi;

/// Request head decoded into a separate buffer, for HTTP versions that compress heads.
pub use multiplexed::DecodedHead;

pub use fields::{ByteSpan, Field, FieldIndex, Fields, KnownField, KnownFieldSet};
pub use limits::Limits;
pub use method::Method;
pub use prepared::PreparedHeads;
pub use request::{OwnedRequest, Request, RequestIndex, TargetForm, Version};
pub use response::{Response, ResponseIndex};
pub use status::Status;
