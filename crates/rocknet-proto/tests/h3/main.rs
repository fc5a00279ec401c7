//! Tests the HTTP/3 engine without a transport: control streams, floods, requests, responses, splits and tunnels.

mod control;
mod floods;
mod requests;
mod responses;
mod splits;
mod tunnels;
mod wire;
