//! Listening sockets: addresses, binding with errors that name the remedy, accepting, and options of connections.

mod accept;
mod address;
mod backlog;
mod bind_error;
mod listener;
mod option;
mod peer_address;
mod socket_file;

#[cfg(target_os = "linux")]
#[path = "socket/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "socket/portable.rs"]
mod system;

#[cfg(test)]
mod tests;

pub use accept::{AcceptErrorKind, accept, accept_error_kind, local_address};
pub use address::Address;
pub use backlog::BACKLOG;
pub use bind_error::{BindError, BindErrorKind};
pub(crate) use listener::lacks_ipv6;
pub use listener::{ListenOptions, Listener, bind_next_free};
pub(crate) use option::cork;
pub use option::{Keepalive, defer_accept, keepalive, notsent_lowat, user_timeout};
pub use peer_address::PeerAddress;
