//! The life of an exchange, the same for every HTTP version: from its request to its record in the log.
//!
//! ```text
//! begin ──ready────────────────────────────────────────────▶ recorded
//!   └──▶ Waiting ──response──▶ Sending ──last piece──────▶ recorded
//!           │           └──agreed──▶ Tunnel ──ended──▶ recorded
//!           └──panic, deadline──▶ an error in place of the response
//! ```
//! `flow.rs` goes from stage to stage, `exchange.rs` holds the stage. What depends on the version is behind the trait
//! [`responder::Responder`]: the connection owns the exchange, drives it, and receives request bodies.

pub mod body;
pub mod connection;
pub mod connection_info;
pub mod deadlines;
pub mod drive;
pub mod exchange;
pub mod expiry;
pub mod flow;
pub mod poll_handler;
pub mod request_body;
pub mod responder;
pub mod sending;
pub mod tunnel;
