//! HTTP/2 connections: they pass requests from the protocol engine to exchanges, and responses back.

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
