//! Sends and receives one datagram per system call, without congestion mark and local address.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use super::batch::{BUFFER_SIZE, MAX_BATCHES, RecvMeta, canonical};
use super::ecn::Ecn;
use super::option::set;
use super::transmit::Transmit;

/// True if the kernel segments the bytes of a send.
pub(super) const HAS_SEGMENTATION: bool = false;

/// True if an IPv6 socket accepts plain IPv4 destinations, not only IPv4-mapped IPv6 addresses.
pub(super) const TAKES_IPV4_ON_IPV6: bool = false;

/// Forbids fragmentation, as QUIC requires (RFC 9000 §14). `v6` is true for an IPv6 socket.
pub(super) fn enable_options(socket: &Socket, v6: bool) -> io::Result<()> {
    let over_v4 = set(socket, libc::IPPROTO_IP, libc::IP_DONTFRAG, 1);
    if v6 {
        // The result for IPv4 is ignored, because not every system permits the IPv4 option on an IPv6 socket that also
        // sends over IPv4.
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, 1)
    } else {
        over_v4
    }
}

/// Sends the first `chunk` bytes of `transmit` with one call. The kernel chooses the local address.
pub(super) fn send(socket: &OwnedFd, transmit: &Transmit<'_>, chunk: usize) -> Result<(), Errno> {
    rustix::net::sendto(
        socket,
        &transmit.bytes[..chunk],
        SendFlags::DONTWAIT,
        &transmit.destination,
    )
    .map(drop)
}

/// Receives up to `MAX_BATCHES` datagrams without waiting, each into its own `BUFFER_SIZE` bytes of `memory`, and
/// appends their metadata to `batches`, which must be empty.
pub(super) fn receive(socket: &OwnedFd, memory: &mut [u8], batches: &mut Vec<RecvMeta>) -> Result<(), Errno> {
    for buffer in memory.chunks_mut(BUFFER_SIZE).take(MAX_BATCHES) {
        let (_, length, source) = match rustix::net::recvfrom(socket, buffer, RecvFlags::DONTWAIT) {
            Ok(received) => received,
            // The datagrams received before the error are returned without it.
            Err(_) if !batches.is_empty() => break,
            Err(error) => return Err(error),
        };
        let source = source.and_then(|source| SocketAddr::try_from(source).ok());
        let length = if source.is_some() { length } else { 0 };
        batches.push(RecvMeta {
            source: source.map_or((Ipv4Addr::UNSPECIFIED, 0).into(), canonical),
            destination: None,
            ecn: Ecn::None,
            length,
            segment: length,
        });
    }
    Ok(())
}
