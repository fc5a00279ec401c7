//! Upgrade of a running server: a new process takes over the sockets of the old one, without a gap.
//!
//! ```text
//! old process (successor.rs)                       new process (predecessor.rs)
//!   starts the program with one end of a channel as its standard input
//!   offer: version, generation, state folder,
//!   account helper, secrets of TLS tickets and of
//!   limits, channels for QUIC datagrams, one message
//!   for each socket, end ─────────────────────────▶ loads the configuration, adopts the sockets (adopted.rs),
//!                                                   binds new addresses
//!                       ◀── unused UDP, prepared    everything but the workers has started
//!   limits of clients ────────────────────────────▶ adopts them
//!   gives up the socket files, stops reading UDP
//!   sessions of early data, go ───────────────────▶ starts the workers
//!   notifies the service manager ◀───────── ready
//!   closes the channel ───────────────────────────▶ notifies the service manager
//!   stops accepting, drains
//! ```
//! Generation: the number of the new process, which its QUIC connection IDs contain.
//!
//! Unused UDP: the addresses whose UDP sockets the new process does not read. The old process continues to read them.
//! The old process no longer removes the socket files that it gave up, because clients reach the new process through
//! them.
//!
//! Both processes refer to the same listening sockets, so a connection that waits in the queue of a socket is accepted
//! by one of them. If the new process fails before it is ready, the old one continues.

mod adopted;
mod message;
mod message_bounds;
mod optional_message;
mod predecessor;
mod successor;

pub use adopted::{AdoptedAddress, AdoptedSockets};
pub use message::{OfferedSocket, SocketGroup, SocketKind};
pub use predecessor::Predecessor;
pub use successor::{Offer, Successor, UpgradeError};
