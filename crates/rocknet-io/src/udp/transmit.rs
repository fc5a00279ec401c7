//! Datagrams to send, and the limits of one send.

use std::net::{IpAddr, SocketAddr};

use super::ecn::Ecn;

/// Maximum number of datagrams in one send. Linux accepts 64, and 128 since 6.9.
pub const MAX_SEGMENTS: usize = 64;
/// Maximum number of bytes in one send: the largest payload of UDP over IPv4.
pub const MAX_TRANSMIT_BYTES: usize = 65_507;

/// Datagrams to one peer that are sent together.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'b> {
    /// Address of the peer.
    pub destination: SocketAddr,
    /// The local address to send from; `None` lets the kernel choose.
    pub source: Option<IpAddr>,
    /// Congestion mark.
    pub ecn: Ecn,
    /// The datagrams, one after the other: at most [`MAX_TRANSMIT_BYTES`] bytes in at most [`MAX_SEGMENTS`] datagrams.
    pub bytes: &'b [u8],
    /// Length of each datagram except the last, which may be shorter. Must not be 0.
    pub segment: usize,
}
