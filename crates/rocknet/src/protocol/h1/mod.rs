//! HTTP/1.1 and 1.0 connections: the engine's events on one side, exchanges on the other.

mod answering;
mod closing;
mod connection;
mod content;
mod reading;
mod reply;
mod tunnelling;
mod waiting;

pub use connection::Connection;
