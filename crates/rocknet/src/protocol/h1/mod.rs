//! HTTP/1.1 and 1.0 connections: the engine's events on one side, exchanges on the other.

mod block;
mod connection;
mod content;
mod deadlines;
mod feed;
mod record;
mod reply;

pub use block::Block;
pub use connection::Connection;
