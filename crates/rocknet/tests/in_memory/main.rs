//! HTTP/1 connections without a socket: in every split of the bytes they answer the same, and time passes when told to.

mod deadlines;
mod life;
mod limits;
mod splits;
mod world;

/// What a client asks that wants nothing unusual.
const GET: &str = "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n";
