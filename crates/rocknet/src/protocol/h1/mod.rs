//! HTTP/1.0 and HTTP/1.1 connections: they pass requests from the protocol engine to exchanges, and responses back.

mod body_reader;
mod closing;
mod connection;
mod dispatch;
mod poll_exchange;
mod reading;
mod responder;
mod tunnel;

pub use connection::Connection;
