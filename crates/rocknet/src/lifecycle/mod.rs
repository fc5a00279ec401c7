//! Exchanges and connections, from a request to its record in the access log. This code is the same for every HTTP
//! version, except that only HTTP/1 and HTTP/2 use `connection.rs` and `drive.rs`.
//!
//! ```text
//! begin ──ready────────────────────────────────────────────▶ recorded
//!   └──▶ Waiting ──response──▶ Sending ──last piece──────▶ recorded
//!           │           └──upgrade─▶ Tunnel ──ended──▶ recorded
//!           └──panic, deadline──▶ an error in place of the response
//! ```
//! A response or tunnel that fails is cut and then recorded. A response whose deadline passes after it has begun is
//! cut too. A tunnel whose deadline passes is closed in an orderly way, unless the client has not taken all bytes.
//!
//! `flow.rs` moves an exchange from stage to stage, and `exchange.rs` defines the stages. Each HTTP version implements
//! the trait [`responder::Responder`]. The connection of that version owns the exchange, drives it, and receives
//! request bodies.

pub mod body;
pub mod body_receiver;
pub mod connection;
pub mod connection_info;
pub mod deadlines;
pub mod drive;
pub mod exchange;
pub mod expiry;
pub mod flow;
mod offences;
pub mod poll_handler;
pub mod request_body;
pub mod responder;
pub mod seen_targets;
pub mod sending;
pub mod tunnel;
