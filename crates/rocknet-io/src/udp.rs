//! UDP sockets for HTTP/3: each call sends or receives many datagrams, with their congestion mark (ECN) and local
//! address.
//!
//! The sockets wait for readiness events of the runtime. Both I/O back ends deliver these events, so this code works
//! with either.

mod control;
mod ecn;
mod error;
mod receive;
#[cfg(test)]
mod tests;
mod transmit;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::unix::AsyncFd;

use self::control::ControlBuffer;
pub use self::ecn::Ecn;
use self::error::last_error;
pub use self::receive::{RecvBuffers, RecvMeta};
pub use self::transmit::{MAX_SEGMENTS, MAX_TRANSMIT_BYTES, Transmit};

/// Buffer size in bytes requested for a socket in each direction. The default of 208 KiB has room for only a few of the
/// largest batches. The kernel limits the size to `net.core.rmem_max` and `wmem_max`.
const SOCKET_BUFFER: usize = 2 << 20;

/// A UDP socket with segmentation offload (GSO and GRO), ECN and local addresses.
pub struct UdpSocket {
    socket: AsyncFd<OwnedFd>,
    /// True while the kernel segments the bytes of a send. If the network device does not support that, datagrams are
    /// sent one by one.
    kernel_segments: AtomicBool,
}

impl UdpSocket {
    /// Binds a socket. With `share`, other sockets can be bound to the same address, and the kernel distributes peers
    /// over all of them.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be bound, or if the kernel lacks a required option.
    pub fn bind(address: SocketAddr, share: bool) -> io::Result<UdpSocket> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
        socket.set_nonblocking(true)?;
        socket.set_reuse_port(share)?;
        // A smaller buffer than requested is acceptable.
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
        control::enable_options(&socket, address.is_ipv6())?;
        socket.bind(&address.into())?;
        Ok(UdpSocket {
            socket: crate::epoll::register(OwnedFd::from(socket))?,
            kernel_segments: AtomicBool::new(true),
        })
    }

    /// Returns the bound address.
    ///
    /// # Errors
    ///
    /// Fails if the system call does.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        let address = socket2::SockRef::from(self.socket.get_ref()).local_addr()?;
        address.as_socket().ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Receives one or more batches of datagrams into `buffers`.
    ///
    /// # Errors
    ///
    /// Fails if receiving does.
    pub fn poll_receive(&self, context: &mut Context<'_>, buffers: &mut RecvBuffers) -> Poll<io::Result<()>> {
        loop {
            let mut readiness = ready!(self.socket.poll_read_ready(context))?;
            match buffers.receive(self.socket.get_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Poll::Ready(Ok(())),
                Err(Errno::AGAIN) => readiness.clear_ready(),
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Sends all datagrams of `transmit`, and removes those that were sent from `transmit.bytes`. After `Pending`, call
    /// again with the same `transmit`. Losses on the network are not reported.
    ///
    /// # Errors
    ///
    /// Fails if the datagrams cannot be sent; the socket remains usable. `InvalidInput` if `transmit` exceeds its
    /// limits, or if its `segment` is 0.
    pub fn poll_send(&self, context: &mut Context<'_>, transmit: &mut Transmit<'_>) -> Poll<io::Result<()>> {
        let Transmit { bytes, segment, .. } = *transmit;
        if segment == 0 || bytes.len() > MAX_TRANSMIT_BYTES || bytes.len().div_ceil(segment) > MAX_SEGMENTS {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        while !transmit.bytes.is_empty() {
            let chunk = match self.kernel_segments.load(Ordering::Relaxed) {
                true => transmit.bytes.len(),
                false => segment.min(transmit.bytes.len()),
            };
            match self.send(transmit, chunk) {
                Ok(()) => transmit.bytes = &transmit.bytes[chunk..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => ready!(self.socket.poll_write_ready(context))?.clear_ready(),
                // EIO: the network device has no checksum offload, which segmentation by the kernel requires. EINVAL
                // has several causes; unless it was the segmentation, sending the first datagram alone fails too.
                Err(Errno::IO | Errno::INVAL) if chunk > segment => {
                    self.kernel_segments.store(false, Ordering::Relaxed);
                }
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        Poll::Ready(Ok(()))
    }

    #[allow(unsafe_code)]
    fn send(&self, transmit: &Transmit<'_>, chunk: usize) -> Result<(), Errno> {
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
            message.msg_controllen = length;
        }
        // SAFETY: everything that the message points to lives until the call returns, has the given lengths, and is
        // only read.
        let sent = unsafe { libc::sendmsg(self.socket.get_ref().as_raw_fd(), ptr::from_ref(&message), 0) };
        if sent < 0 { Err(last_error()) } else { Ok(()) }
    }
}
