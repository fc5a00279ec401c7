//! The contract between the server and what answers requests: a request with its route, a response, and the trait that
//! joins them.
//!
//! ```text
//! Exchange { request, content, path, route, services, … } ─▶ Handler ─▶ HandlerOutput { Response { status, fields, body } }
//!     interim responses on the way: interim.rs                            another protocol in place of a body: tunnel.rs
//! ```
//! It knows no HTTP version, no socket of a client, and of a site only what its routes say.
#![forbid(unsafe_code)]

pub mod address;
pub mod background;
pub mod balance;
pub mod breaker;
pub mod client;
pub mod clock;
pub mod exchange;
pub mod filter;
pub mod fixed;
pub mod forwarded;
pub mod guard;
pub mod handler;
pub mod headers;
pub mod interim;
pub mod open_file;
pub mod port_exhaustion;
pub mod preload;
pub mod request_body;
pub mod response;
pub mod route;
pub mod services;
pub mod spool;
pub mod start_limiter;
pub mod tls_info;
pub mod tunnel;
pub mod upgrade;

pub use handler::{ExchangeRef, Handler, HandlerFuture, HandlerOutput, respond_with};
