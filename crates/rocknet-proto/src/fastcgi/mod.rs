//! FastCGI 1.0 in the role of the web server: encodes a request to records, and parses records to a response.
//!
//! A connection carries one request at a time, and another after it if both sides keep the connection open.
//! Multiplexing is not implemented, because no application server in use supports it.

mod record;
mod request;
mod response_reader;

pub use request::{Params, begin, stdin, stdin_end};
pub use response_reader::{EndRequest, RecordError, RecordEvent, RecordProgress, ResponseReader};
