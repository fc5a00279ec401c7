//! HTTP/1 held in conversation: tables of bytes and what they must mean, in every split and with more bytes behind.

mod answers;
mod check;
mod content;
mod laws;
mod limits;
mod requests;
mod responses;
