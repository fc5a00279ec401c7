//! Listening sockets: where to listen, binding with errors that teach, accepting, and the options of connections.

mod accept;
mod address;
mod backlog;
mod bind_error;
mod listener;
mod option;
mod peer;
mod socket_file;

#[cfg(target_os = "linux")]
#[path = "socket/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "socket/portable.rs"]
mod system;

#[cfg(test)]
mod tests;

pub use accept::{AcceptTrouble, accept, accept_trouble, local_address};
pub use address::Address;
pub use backlog::BACKLOG;
pub use bind_error::{BindError, BindErrorKind};
pub use listener::{Listener, Options, next_free};
pub(crate) use option::cork;
pub use option::{Keepalive, defer_accept, keepalive, notsent_lowat, user_timeout};
pub use peer::Peer;
