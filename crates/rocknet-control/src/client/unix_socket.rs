//! Connection to a control socket with a limit for the wait, and the process at its other end.

#[cfg(target_os = "linux")]
#[path = "unix_socket/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "unix_socket/portable.rs"]
mod system;

pub(super) use system::{connect, peer};

/// Process at the other end of a control socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Id of the process that began to listen at the socket.
    pub pid: u32,
    /// Account of that process.
    pub uid: u32,
}
