//! FastCGI 1.0 in the role of the web server: encodes a request as records, and parses the records of a response.
//!
//! A connection carries one request at a time, and further requests after it if both sides keep the connection open.
//! Multiplexing is not implemented, because no application server in use supports it.

mod record;
mod request;
mod response_reader;

pub use request::{Params, begin, stdin, stdin_end};
pub use response_reader::{EndRequest, RecordError, RecordEvent, RecordProgress, ResponseReader};
