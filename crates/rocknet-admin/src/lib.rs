//! Control API and dashboard of a running server: a handler that passes requests to the program, and returns the
//! replies as JSON or as pages.
//!
//! ```text
//! request ─▶ guard.rs: checks the host, the origin and the media type
//!   │
//!   ├─▶ API: token or password (tcp_access.rs), cookie (dashboard/session.rs), or a Unix socket
//!   │     └─▶ endpoint of rocknet-control ─▶ Control::execute ─▶ reply as JSON
//!   │
//!   └─▶ dashboard (dashboard.rs): cookie (dashboard/session.rs), except for assets and the login
//!         └─▶ view or events ─▶ Control::execute ─▶ HTML or server-sent events
//! ```
//! The crate `rocknet-control` defines the requests and replies. The program that runs the server implements
//! [`Control`].
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod content;
mod dashboard;
mod guard;
mod handler;
mod heartbeat;
mod metrics_text;
mod tcp_access;
mod tokens;

use std::future::Future;
use std::pin::Pin;

use rocknet_control::api::{ApiError, Reply, Request};
use rocknet_control::logs::LogFilter;
use rocknet_handler::response::Stream;

pub use dashboard::Dashboard;
pub use guard::AllowedHosts;
pub use handler::AdminHandler;
pub use tcp_access::TcpAccess;
pub use tokens::Tokens;

/// Future of the reply to a request.
pub type ReplyFuture = Pin<Box<dyn Future<Output = Result<Reply, ApiError>>>>;

/// Executes requests: the program that runs the server.
pub trait Control: Clone + Send + Sync + 'static {
    /// Executes a request. The future is dropped if the client disconnects.
    fn execute(&self, request: Request) -> ReplyFuture;

    /// Returns a stream of server-sent events with the log lines that a filter selects. Dropping the future of the next
    /// event must not lose lines.
    ///
    /// # Errors
    ///
    /// Status 503 if too many clients follow the logs.
    fn follow_logs(&self, filter: LogFilter) -> Result<Box<dyn Stream>, ApiError>;
}
