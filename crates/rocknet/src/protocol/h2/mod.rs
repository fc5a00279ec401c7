//! HTTP/2 connections: the engine's events on one side, exchanges on the other.

mod closing;
mod connection;
mod dispatch;
mod frame_writer;
mod poll_exchange;
mod push;
mod push_state;
mod read_while_blocked;
mod reading;
mod responder;
mod send_budget;
mod streams;
mod tunnel;

pub use connection::{Connection, Upgraded};
