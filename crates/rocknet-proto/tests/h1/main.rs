//! HTTP/1 held in conversation: tables of bytes and what they must mean, in every split and with more bytes behind.

mod bodies;
mod check;
mod client_responses;
mod limits;
mod properties;
mod requests;
mod server_responses;
