//! HTTP/2 connections: the engine's events on one side, exchanges on the other.

mod answer;
mod answering;
mod closing;
mod connection;
mod feeding;
mod holding;
mod pushes;
mod pushing;
mod reading;
mod reply;
mod send_ahead;
mod tunnelling;
mod waiting;

pub use connection::{Connection, Upgraded};
