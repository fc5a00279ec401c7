//! Upgrade of a running server: a new process takes over the sockets of the old one, without a gap.
//!
//! ```text
//! old process (successor.rs)                       new process (predecessor.rs)
//!   starts the program with one end of a channel as its standard input
//!   offer: version, generation ───────────────────▶ loads the configuration
//!   one message for each socket, end ─────────────▶ adopts the sockets (inherited.rs), binds new addresses
//!                                    ◀── prepared   everything but the workers has started
//!   leaves the socket files ──── go ──────────────▶ starts the workers
//!   stops accepting, drains ◀────────────── ready
//! ```
//!
//! Both processes refer to the same listening sockets, so a connection that waits in the queue of a socket is accepted
//! by one of them. If the new process fails before it is ready, the old one continues.

mod inherited;
mod message;
mod predecessor;
mod successor;

pub use inherited::{InheritedAddress, InheritedSockets};
pub use message::{OfferedSocket, SocketGroup, SocketKind};
pub use predecessor::Predecessor;
pub use successor::{Offer, Successor, UpgradeError};
