//! Sends and receives batches of datagrams by `sendmsg` and `recvmmsg`, with control messages.

use std::mem::{size_of, zeroed};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;
use socket2::{SockAddr, SockAddrStorage};

use super::batch::{BUFFER_SIZE, MAX_BATCHES, RecvMeta, canonical};
pub(super) use super::control::enable_options;
use super::control::{self, ControlBuffer};
use super::error::last_error;
use super::transmit::Transmit;

/// True if the kernel segments the bytes of a send.
pub(super) const HAS_SEGMENTATION: bool = true;

/// True if an IPv6 socket accepts plain IPv4 addresses as destinations. If false, it requires IPv4-mapped IPv6
/// addresses.
pub(super) const TAKES_IPV4_ON_IPV6: bool = true;

/// Sends the first `chunk` bytes of `transmit` with one call.
#[allow(unsafe_code)]
pub(super) fn send(socket: &OwnedFd, transmit: &Transmit<'_>, chunk: usize) -> Result<(), Errno> {
    let to = SockAddr::from(transmit.destination);
    let mut bytes = libc::iovec {
        iov_base: transmit.bytes.as_ptr().cast_mut().cast(),
        iov_len: chunk,
    };
    let mut control = ControlBuffer::new();
    let length = control.write(transmit, chunk > transmit.segment);
    // SAFETY: all zeros is an empty message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = to.as_ptr().cast_mut().cast();
    message.msg_namelen = to.len();
    message.msg_iov = &raw mut bytes;
    message.msg_iovlen = 1;
    if length > 0 {
        message.msg_control = control.as_mut_ptr();
        message.msg_controllen = length as _;
    }
    // SAFETY: everything that the message points to lives until the call returns, has the given lengths, and is
    // only read.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), ptr::from_ref(&message), 0) };
    if sent < 0 { Err(last_error()) } else { Ok(()) }
}

/// Receives batches with one call, each into its own `BUFFER_SIZE` bytes of `memory`, and appends their metadata to
/// `batches`. `memory` must have `MAX_BATCHES * BUFFER_SIZE` bytes.
#[allow(unsafe_code)]
pub(super) fn receive(socket: &OwnedFd, memory: &mut [u8], batches: &mut Vec<RecvMeta>) -> Result<(), Errno> {
    let mut addresses: [SockAddrStorage; MAX_BATCHES] = std::array::from_fn(|_| SockAddrStorage::zeroed());
    let mut controls = [ControlBuffer::new(); MAX_BATCHES];
    // SAFETY: all zeros is an empty message and an empty iovec.
    let (mut messages, mut iovecs): ([libc::mmsghdr; MAX_BATCHES], [libc::iovec; MAX_BATCHES]) =
        unsafe { (zeroed(), zeroed()) };
    for (number, buffer) in memory.chunks_mut(BUFFER_SIZE).enumerate() {
        iovecs[number].iov_base = buffer.as_mut_ptr().cast();
        iovecs[number].iov_len = BUFFER_SIZE;
        let head = &mut messages[number].msg_hdr;
        head.msg_name = (&raw mut addresses[number]).cast();
        head.msg_namelen = size_of::<SockAddrStorage>() as u32;
        head.msg_iov = &raw mut iovecs[number];
        head.msg_iovlen = 1;
        head.msg_control = controls[number].as_mut_ptr();
        head.msg_controllen = ControlBuffer::capacity() as _;
    }
    // SAFETY: each message points to its own memory, which has the given length and lives until the call returns.
    let got = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            MAX_BATCHES as u32,
            libc::MSG_DONTWAIT as _,
            std::ptr::null_mut(),
        )
    };
    let got = usize::try_from(got).map_err(|_| last_error())?;
    for (message, address) in messages[..got].iter().zip(addresses) {
        let head = &message.msg_hdr;
        let info = control::read(head);
        // SAFETY: the kernel has written an address of this length.
        let from = unsafe { SockAddr::new(address, head.msg_namelen) }.as_socket();
        // An empty batch replaces an unusable datagram, so that batches and buffers are in the same order.
        let whole = head.msg_flags & libc::MSG_TRUNC == 0;
        let length = if whole && from.is_some() {
            message.msg_len as usize
        } else {
            0
        };
        batches.push(RecvMeta {
            source: from.map_or((Ipv4Addr::UNSPECIFIED, 0).into(), canonical),
            destination: info.destination,
            ecn: info.ecn,
            length,
            segment: info.segment.unwrap_or(length),
        });
    }
    Ok(())
}
