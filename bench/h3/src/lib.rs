//! Parts of the HTTP/3 benchmark programs: an event loop for `quinn-proto`, TLS, and the client side of HTTP/3.
//!
//! The load generator and the floor use the same event loop, so that the difference between a server and the floor is
//! the server's own cost.

pub mod arguments;
pub mod event_loop;
pub mod load;
pub mod qpack;
pub mod response;
pub mod tls;
pub mod udp;
pub mod varint;
