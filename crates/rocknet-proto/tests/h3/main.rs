//! The HTTP/3 engine, byte by byte: requests, bodies, control streams, errors and floods.

mod control;
mod floods;
mod requests;
mod responses;
mod splits;
mod tunnels;
mod wire;
