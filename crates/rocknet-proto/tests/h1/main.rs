//! HTTP/1 tests with transcripts: tables of bytes with their events, in every split and with more bytes after them.

mod bodies;
mod check;
mod client_responses;
mod limits;
mod properties;
mod requests;
mod server_responses;
