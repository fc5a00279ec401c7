//! HTTP/1.0 and HTTP/1.1 connections: connect the protocol engine with exchanges.

mod body_reader;
mod closing;
mod connection;
mod dispatch;
mod poll_exchange;
mod reading;
mod responder;
mod tunnel;

pub use connection::Connection;
