//! Readiness back end: sockets driven by the event loop of the Tokio runtime (epoll on Linux, kqueue on macOS and BSD).

#[cfg(unix)]
mod stream;
#[cfg(unix)]
pub(crate) mod write_batch;
// The runtime calls `write_batch` on every system. This version does nothing.
#[cfg(not(unix))]
#[path = "epoll/write_batch/portable.rs"]
pub(crate) mod write_batch;

#[cfg(unix)]
pub(crate) use stream::register;
#[cfg(unix)]
pub use stream::{Acceptor, EpollStream, ParkedConnection};
#[cfg(target_os = "linux")]
pub(crate) use stream::{
    FILE_BUDGET, enable_tcp_keepalive, in_flight, limit_unsent, receive, reset, send_queue, shut_down,
};
