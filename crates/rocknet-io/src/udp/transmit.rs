//! UdpSocket on their way out, and the bounds of one send.

use std::net::{IpAddr, SocketAddr};

use super::ecn::Ecn;

/// Most datagrams of one send. Linux takes 64, and 128 since 6.9.
pub const MAX_SEGMENTS: usize = 64;
/// Most bytes of one send: what UDP over IPv4 can carry.
pub const MAX_TRANSMIT_BYTES: usize = 65_507;

/// UdpSocket of one peer that leave together.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'b> {
    pub destination: SocketAddr,
    /// The address of this machine to send from; the kernel chooses if there is none.
    pub source: Option<IpAddr>,
    pub ecn: Ecn,
    /// At most [`MAX_TRANSMIT_BYTES`] and [`MAX_SEGMENTS`].
    pub bytes: &'b [u8],
    /// The length of each datagram but the last, which may be shorter.
    pub segment: usize,
}
