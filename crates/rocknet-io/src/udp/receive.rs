//! Buffers for received datagrams and their metadata.

use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use socket2::{SockAddr, SockAddrStorage};

use super::control::{self, ControlBuffer};
use super::ecn::Ecn;
use super::error::last_error;

/// Maximum number of batches received by one call. A batch is one message of `recvmmsg`: one datagram, or dozens from
/// the same peer that the kernel has coalesced (GRO). More batches would only delay other tasks.
const BATCH: usize = 8;
/// Size in bytes of the buffer for each batch. The kernel coalesces at most this many bytes.
const BUFFER_SIZE: usize = 64 * 1024;

/// Metadata of a batch of datagrams received from one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvMeta {
    /// Address of the peer; 0.0.0.0 with port 0 in an empty batch for a datagram without a source.
    pub source: SocketAddr,
    /// The local address to which the datagrams were sent, if known.
    pub destination: Option<IpAddr>,
    /// Congestion mark.
    pub ecn: Ecn,
    /// Total length of the datagrams in bytes.
    pub length: usize,
    /// Length of each datagram except the last, which may be shorter.
    pub segment: usize,
}

/// Receive buffers of half a megabyte in total, which a worker shares among its sockets.
pub struct RecvBuffers {
    memory: Box<[u8]>,
    batches: Vec<RecvMeta>,
}

impl Default for RecvBuffers {
    fn default() -> RecvBuffers {
        RecvBuffers {
            memory: vec![0; BATCH * BUFFER_SIZE].into(),
            batches: Vec::with_capacity(BATCH),
        }
    }
}

impl RecvBuffers {
    /// Returns the batches that the last [`UdpSocket::poll_receive`](super::UdpSocket::poll_receive) received, each
    /// with its datagrams. A batch without datagrams replaces a datagram that was empty, truncated or without a source.
    pub fn batches(&self) -> impl Iterator<Item = (&RecvMeta, impl Iterator<Item = &[u8]>)> {
        let each = self.batches.iter().zip(self.memory.chunks(BUFFER_SIZE));
        each.map(|(batch, memory)| (batch, memory[..batch.length].chunks(batch.segment.max(1))))
    }

    /// Receives with one call and returns the number of batches. A truncated datagram, or one without a source, becomes
    /// an empty batch.
    #[allow(unsafe_code)]
    pub(super) fn receive(&mut self, socket: &OwnedFd) -> Result<usize, Errno> {
        self.batches.clear();
        let mut addresses: [SockAddrStorage; BATCH] = std::array::from_fn(|_| SockAddrStorage::zeroed());
        let mut controls = [ControlBuffer::new(); BATCH];
        // SAFETY: all zeros is an empty message and an empty iovec.
        let (mut messages, mut iovecs): ([libc::mmsghdr; BATCH], [libc::iovec; BATCH]) =
            unsafe { (zeroed(), zeroed()) };
        for (number, memory) in self.memory.chunks_mut(BUFFER_SIZE).enumerate() {
            iovecs[number].iov_base = memory.as_mut_ptr().cast();
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
                BATCH as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let got = usize::try_from(got).map_err(|_| last_error())?;
        for (message, name) in messages[..got].iter().zip(addresses) {
            let head = &message.msg_hdr;
            let info = control::read(head);
            // SAFETY: the kernel has written an address of this length.
            let from = unsafe { SockAddr::new(name, head.msg_namelen) }.as_socket();
            // An empty batch in place of an unusable datagram keeps batches and buffers in the same order.
            let whole = head.msg_flags & libc::MSG_TRUNC == 0;
            let length = if whole && from.is_some() {
                message.msg_len as usize
            } else {
                0
            };
            self.batches.push(RecvMeta {
                source: from.map_or((Ipv4Addr::UNSPECIFIED, 0).into(), canonical),
                destination: info.destination,
                ecn: info.ecn,
                length,
                segment: info.segment.unwrap_or(length),
            });
        }
        Ok(got)
    }
}

/// Converts the IPv4-mapped address of an IPv4 peer of an IPv6 socket to IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}
