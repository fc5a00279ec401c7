//! Where datagrams are received: memory for one call's worth of them, and what was info of each.

use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use socket2::{SockAddr, SockAddrStorage};

use super::control::{self, ControlBuffer};
use super::ecn::Ecn;
use super::error::last_error;

/// Arrivals taken by one call. Each may hold dozens of datagrams, so that more would only make others wait.
const BATCH: usize = 8;
/// RecvBuffers for each: what the kernel puts together has this bound.
const BUFFER_SIZE: usize = 64 * 1024;

/// UdpSocket of one peer that came together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvMeta {
    pub source: SocketAddr,
    /// The address of this machine that they were sent to.
    pub destination: Option<IpAddr>,
    pub ecn: Ecn,
    pub length: usize,
    /// The length of each datagram but the last, which may be shorter.
    pub segment: usize,
}

/// Half a megabyte that a worker keeps for all its sockets.
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
    /// What the last call brought, each with its datagrams.
    pub fn batches(&self) -> impl Iterator<Item = (&RecvMeta, impl Iterator<Item = &[u8]>)> {
        let each = self.batches.iter().zip(self.memory.chunks(BUFFER_SIZE));
        each.map(|(batch, memory)| (batch, memory[..batch.length].chunks(batch.segment.max(1))))
    }

    /// One call; gives how many batches it brought. What it can make nothing of is left out.
    #[allow(unsafe_code)]
    pub(super) fn receive(&mut self, socket: &OwnedFd) -> Result<usize, Errno> {
        self.batches.clear();
        let mut addresses: [SockAddrStorage; BATCH] = std::array::from_fn(|_| SockAddrStorage::zeroed());
        let mut controls = [ControlBuffer::new(); BATCH];
        // SAFETY: all zeros is an empty message and an empty stretch.
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
        // SAFETY: each message addresses memory of its own, of the length info, that lives until the call returns.
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
            // Cut short, or from nowhere: nothing in UDP, and then an batch of no length keeps the places in order.
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

/// An IPv4 peer is one also where it came in through an IPv6 socket.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}
