//! Contract between the server and its handlers: a request with its route, a response, and the trait [`Handler`].
//!
//! ```text
//! Exchange { request, body, path, route, services, … } ─▶ Handler ─▶ HandlerOutput: Response { status, fields, body }
//!     interim responses before it: interim.rs                             a tunnel in place of a body: tunnel.rs
//! ```
//! The crate depends on no HTTP version and on no client socket. Of a site, it uses only the settings of routes.
//!
//! A handler implements [`Handler`]:
//!
//! ```
//! use rocknet_handler::exchange::Exchange;
//! use rocknet_handler::response::Response;
//! use rocknet_handler::{Handler, HandlerFuture, respond_with};
//! use rocknet_proto::status::Status;
//!
//! /// Responds with the number of bytes in the request body.
//! struct CountBytes;
//!
//! impl Handler for CountBytes {
//!     fn handle(&self, mut exchange: Exchange) -> HandlerFuture {
//!         respond_with(async move {
//!             let mut count = 0;
//!             loop {
//!                 match exchange.body.chunk().await {
//!                     Ok(Some(chunk)) => count += chunk.len(),
//!                     Ok(None) => break,
//!                     Err(error) => return Response::new(error.status()),
//!                 }
//!             }
//!             Response::new(Status::OK)
//!                 .with("Content-Type", "text/plain")
//!                 .body(format!("{count} bytes").into_bytes())
//!         })
//!     }
//! }
//! ```
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod address;
pub mod background;
pub mod balance;
pub mod bandwidth;
pub mod breaker;
pub mod client;
pub mod clock;
pub mod cors;
pub mod exchange;
pub mod filter;
pub mod fixed;
pub mod forwarded;
pub mod guard;
pub mod handler;
pub mod harden;
pub mod headers;
pub mod interim;
pub mod open_file;
pub mod outcomes;
pub mod port_exhaustion;
pub mod preload;
pub mod request_body;
pub mod response;
pub mod route;
pub mod services;
pub mod shared_bandwidth;
pub mod spool;
pub mod start_limiter;
pub mod stored;
pub mod tls_info;
pub mod tunnel;
pub mod upgrade;
pub mod values;

pub use handler::{ExchangeRef, Handler, HandlerFuture, HandlerOutput, Reuse, respond_with};
