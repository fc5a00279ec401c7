//! HTTP/3 connections: QUIC streams and the engine's events on one side, exchanges on the other.

mod closing;
mod connection;
mod dispatch;
mod drain;
mod heads;
mod hq;
mod output;
mod poll_exchange;
mod reading;
mod responder;
mod send_order;
mod streams;
mod tunnel;

pub use connection::{Connection, remembered_settings};
