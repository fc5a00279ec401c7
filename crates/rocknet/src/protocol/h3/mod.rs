//! HTTP/3 connections: they pass requests from QUIC streams and the protocol engine to exchanges, and responses back.

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
