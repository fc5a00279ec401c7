//! Control API of a running server: a handler that passes requests to the program and returns its replies as JSON.
//!
//! ```text
//! request ─▶ guard.rs: host, origin, media type ─▶ tokens.rs, except on a Unix socket
//!         ─▶ endpoints of rocknet-control ─▶ Control::execute ─▶ reply as JSON
//! ```
//! The requests and replies are those of `rocknet-control`. The program implements [`Control`].
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod guard;
mod handler;
mod metrics_text;
mod tokens;

use std::future::Future;
use std::pin::Pin;

use rocknet_control::api::{ApiError, Reply, Request};
use rocknet_control::logs::LogFilter;
use rocknet_handler::response::Stream;

pub use handler::AdminHandler;
pub use tokens::Tokens;

/// Future of the reply to a request.
pub type ReplyFuture = Pin<Box<dyn Future<Output = Result<Reply, ApiError>>>>;

/// Executes requests: the program that runs the server.
pub trait Control: Send + Sync + 'static {
    /// Executes a request. The future is dropped if the client disconnects.
    fn execute(&self, request: Request) -> ReplyFuture;

    /// Returns a stream of server-sent events with the log lines that a filter selects.
    fn follow_logs(&self, filter: LogFilter) -> Box<dyn Stream>;
}
