//! Datagrams on their way out, and the bounds of one send.

use std::net::{IpAddr, SocketAddr};

use super::ecn::Ecn;

/// Most datagrams of one send. Linux takes 64, and 128 since 6.9.
pub const SEGMENTS: usize = 64;
/// Most bytes of one send: what UDP over IPv4 can carry.
pub const LARGEST: usize = 65_507;

/// Datagrams of one peer that leave together.
#[derive(Clone, Copy, Debug)]
pub struct Departure<'b> {
    pub to: SocketAddr,
    /// The address of this machine to send from; the kernel chooses if there is none.
    pub from: Option<IpAddr>,
    pub ecn: Ecn,
    /// At most [`LARGEST`] and [`SEGMENTS`].
    pub bytes: &'b [u8],
    /// The length of each datagram but the last, which may be shorter.
    pub segment: usize,
}
