//! Batch of received datagrams. One receive call returns several batches, each as one message.

use std::net::{IpAddr, SocketAddr};

use super::ecn::Ecn;

/// Maximum number of batches received by one call. A batch is one datagram, or, on Linux, dozens from the same peer
/// that the kernel has coalesced (GRO). More batches would only delay other tasks.
pub(super) const MAX_BATCHES: usize = 8;
/// Size in bytes of the buffer for each batch. The kernel coalesces at most this many bytes.
pub(super) const BUFFER_SIZE: usize = 64 * 1024;

/// Metadata of a batch of datagrams received from one peer. A datagram that was truncated, or whose source is not an IP
/// address, is replaced by an empty batch, so that batches and buffers stay in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvMeta {
    /// Address of the peer; 0.0.0.0 and port 0 if it is not an IP address.
    pub source: SocketAddr,
    /// The local address to which the datagrams were sent, if known.
    pub destination: Option<IpAddr>,
    /// Congestion mark.
    pub ecn: Ecn,
    /// Total length of the datagrams in bytes; 0 for an empty batch.
    pub length: usize,
    /// Length in bytes of each datagram except the last, which may be shorter; may be 0 if `length` is 0.
    pub segment: usize,
}

/// Converts an IPv4-mapped address, which an IPv6 socket reports for an IPv4 peer, to IPv4.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}
