//! HTTP/1.1 and 1.0 connections: the engine's events on one side, exchanges on the other.

mod body_reader;
mod closing;
mod connection;
mod dispatch;
mod poll_exchange;
mod reading;
mod responder;
mod tunnel;

pub use connection::Connection;
