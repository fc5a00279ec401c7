//! UDP sockets for HTTP/3. On Linux each call sends or receives many datagrams, with their congestion mark (ECN) and
//! local address. On other systems each call handles one datagram, without its mark and local address.
//!
//! The sockets wait for readiness events of the runtime. Both I/O back ends deliver these events, so this code works
//! with either.

mod batch;
#[cfg(target_os = "linux")]
mod control;
mod ecn;
#[cfg(target_os = "linux")]
mod error;
mod option;
mod receive;
#[cfg(target_os = "linux")]
#[path = "udp/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "udp/portable.rs"]
mod system;
#[cfg(all(test, target_os = "linux"))]
mod tests;
mod transmit;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use socket2::{Domain, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub use self::batch::RecvMeta;
pub use self::ecn::Ecn;
pub use self::receive::RecvBuffers;
pub use self::transmit::{MAX_SEGMENTS, MAX_TRANSMIT_BYTES, Transmit};
use crate::socket::{Address, lacks_ipv6};

/// Buffer size in bytes requested for a socket in each direction. The default of 208 KiB has room for only a few of the
/// largest batches. Linux limits the size to `net.core.rmem_max` and `wmem_max`.
pub const SOCKET_BUFFER: usize = 2 << 20;

/// Binds `count` sockets, at least one, to a UDP port. [`UdpSocket::new`] takes each of them. Linux distributes clients
/// over the sockets.
///
/// # Errors
///
/// Fails if the address cannot be bound, or if the kernel lacks a required option. `Unsupported` for a socket file.
pub fn bind(address: &Address, count: usize) -> io::Result<Vec<OwnedFd>> {
    let is_shared = false;
    bind_all(address, count, is_shared)
}

/// Binds sockets like [`bind`], but the address overlaps with another address of this process. For example, all
/// addresses of a port overlap with each single address with that port. The sockets of the other address must come
/// from [`bind`] or this function.
///
/// # Errors
///
/// As [`bind`].
pub fn bind_overlapping(address: &Address, count: usize) -> io::Result<Vec<OwnedFd>> {
    let is_shared = true;
    bind_all(address, count, is_shared)
}

/// Binds `count` sockets. `is_shared` is true if other sockets of this process may be bound to an overlapping address.
fn bind_all(address: &Address, count: usize, is_shared: bool) -> io::Result<Vec<OwnedFd>> {
    // `only_v6` has no effect for an IPv4 address.
    let (address, only_v6) = match *address {
        Address::Unix(_) => return Err(io::ErrorKind::Unsupported.into()),
        Address::Tcp { ip: Some(ip), port } => (SocketAddr::from((ip, port)), true),
        Address::Tcp { ip: None, port } => (SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)), false),
    };
    let first = match bind_first(address, only_v6, is_shared) {
        // A machine without IPv6 has all its addresses in IPv4.
        Err(error) if !only_v6 && lacks_ipv6(&error) => bind_first(
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())),
            only_v6,
            is_shared,
        )?,
        result => result?,
    };
    let bound = socket2::SockRef::from(&first).local_addr()?;
    let mut sockets = vec![OwnedFd::from(first)];
    for _ in 1..count {
        let address = bound.as_socket().ok_or(io::ErrorKind::Unsupported)?;
        let socket = unbound(address, only_v6)?;
        socket.set_reuse_port(true)?;
        socket.bind(&bound)?;
        sockets.push(OwnedFd::from(socket));
    }
    Ok(sockets)
}

/// Binds the first socket of an address. Unless `is_shared`, the socket shares the address only after binding, so that
/// binding fails if another program uses the port.
fn bind_first(address: SocketAddr, only_v6: bool, is_shared: bool) -> io::Result<Socket> {
    let socket = unbound(address, only_v6)?;
    if is_shared {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    socket.set_reuse_port(true)?;
    Ok(socket)
}

/// Prepares a UDP socket that another process has bound, as [`bind`] does with its own. Returns its address too.
///
/// # Errors
///
/// `Unsupported` for a socket of another family; other errors if the kernel lacks a required option.
pub fn adopt(socket: OwnedFd) -> io::Result<(Address, OwnedFd)> {
    let flags = rustix::io::fcntl_getfd(&socket)?;
    rustix::io::fcntl_setfd(&socket, flags | rustix::io::FdFlags::CLOEXEC)?;
    let socket = Socket::from(socket);
    let bound = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
    let only_v6 = bound.is_ipv4() || socket.only_v6()?;
    socket.set_nonblocking(true)?;
    enlarge_buffers(&socket);
    system::enable_options(&socket, bound.is_ipv6())?;
    Ok((Address::of(bound, only_v6), OwnedFd::from(socket)))
}

/// Requests large buffers. A smaller buffer than requested is acceptable.
fn enlarge_buffers(socket: &Socket) {
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
}

/// Creates a socket with the options of UDP sockets for `address`, but does not bind it.
fn unbound(address: SocketAddr, only_v6: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    enlarge_buffers(&socket);
    system::enable_options(&socket, address.is_ipv6())?;
    Ok(socket)
}

/// Returns true if the kernel has granted a socket of this module less than [`SOCKET_BUFFER`] in either direction.
/// Losses of datagrams are then likely under load.
pub fn has_small_buffers(socket: &OwnedFd) -> bool {
    let socket = socket2::SockRef::from(socket);
    // Linux reports twice the granted size, because it reserves half for bookkeeping (socket(7)).
    let wanted = if cfg!(target_os = "linux") {
        2 * SOCKET_BUFFER
    } else {
        SOCKET_BUFFER
    };
    let is_small = |granted: io::Result<usize>| granted.is_ok_and(|granted| granted < wanted);
    is_small(socket.recv_buffer_size()) || is_small(socket.send_buffer_size())
}

/// A UDP socket; on Linux with segmentation offload (GSO and GRO), ECN and local addresses.
pub struct UdpSocket {
    socket: AsyncFd<OwnedFd>,
    /// True while the kernel segments the bytes of a send. If the network device does not support that, datagrams are
    /// sent one by one.
    kernel_segments: AtomicBool,
    /// True if IPv4 addresses have to be passed as IPv4-mapped IPv6 addresses.
    maps_ipv4: bool,
}

impl UdpSocket {
    /// Registers a socket from [`bind`], [`bind_overlapping`] or [`adopt`] with the event loop of this thread.
    ///
    /// # Errors
    ///
    /// Fails if the event loop cannot register it.
    ///
    /// # Panics
    ///
    /// Panics outside of a [`Runtime`](crate::runtime::Runtime).
    pub fn new(socket: OwnedFd) -> io::Result<UdpSocket> {
        let address = socket2::SockRef::from(&socket).local_addr()?;
        Ok(UdpSocket {
            maps_ipv4: address.is_ipv6() && !system::TAKES_IPV4_ON_IPV6,
            socket: crate::epoll::register(socket)?,
            kernel_segments: AtomicBool::new(system::HAS_SEGMENTATION),
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

    /// Sends all datagrams of `transmit`, and removes each from `transmit.bytes` once it is sent. After `Pending`, call
    /// again with the same `transmit`. Losses on the network are not reported.
    ///
    /// # Errors
    ///
    /// Fails if the datagrams cannot be sent; the socket remains usable. `InvalidInput` if `transmit` exceeds its
    /// limits, or if its `segment` is 0.
    pub fn poll_send(&self, context: &mut Context<'_>, transmit: &mut Transmit<'_>) -> Poll<io::Result<()>> {
        while !self.try_send(transmit)? {
            ready!(self.poll_writable(context))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the datagrams of `transmit` that the socket takes without waiting, and removes them from `transmit`.
    /// Returns true if no datagram is left.
    ///
    /// # Errors
    ///
    /// As for [`UdpSocket::poll_send`].
    pub fn try_send(&self, transmit: &mut Transmit<'_>) -> io::Result<bool> {
        let Transmit { bytes, segment, .. } = *transmit;
        if segment == 0 || bytes.len() > MAX_TRANSMIT_BYTES || bytes.len().div_ceil(segment) > MAX_SEGMENTS {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if let SocketAddr::V4(destination) = transmit.destination
            && self.maps_ipv4
        {
            transmit.destination = (destination.ip().to_ipv6_mapped(), destination.port()).into();
        }
        while !transmit.bytes.is_empty() {
            let chunk = match self.kernel_segments.load(Ordering::Relaxed) {
                true => transmit.bytes.len(),
                false => segment.min(transmit.bytes.len()),
            };
            let sent = self.socket.try_io(Interest::WRITABLE, |_| {
                Ok(system::send(self.socket.get_ref(), transmit, chunk)?)
            });
            match sent {
                Ok(()) => transmit.bytes = &transmit.bytes[chunk..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // EIO: the network device has no checksum offload, which segmentation by the kernel requires. EINVAL:
                // the kernel refuses to segment these bytes for another reason.
                Err(error) if chunk > segment && matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL)) => {
                    self.kernel_segments.store(false, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Ready once the socket may take datagrams again. Only the last task that polled is woken.
    ///
    /// # Errors
    ///
    /// Fails if the event loop has shut down.
    pub fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_write_ready(context).map_ok(drop)
    }
}
