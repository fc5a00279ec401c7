//! FastCGI 1.0 as the web server speaks it: a request to records, and records to what an application answers.
//!
//! A connection carries one request at a time, and another behind it where both sides keep it open. Multiplexing is left
//! out: no application server in use offers it.

mod record;
mod request;
mod response_reader;

pub use request::{Params, begin, stdin, stdin_end};
pub use response_reader::{EndRequest, RecordError, RecordEvent, RecordProgress, ResponseReader};
