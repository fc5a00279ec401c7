//! A bound, listening, non-blocking socket.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::io::{Errno, FdFlags};
use socket2::{Domain, SockRef, Socket, Type};

use super::socket_file::{self, SocketFile};
use super::{Address, BACKLOG, BindError, system};

/// How to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    pub backlog: i32,
    /// Lets [`Listener::sibling`] put more sockets on the same address, among which the kernel spreads connections.
    pub reuse_port: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            backlog: BACKLOG,
            reuse_port: false,
        }
    }
}

/// A socket that listens. TCP ones have TCP_NODELAY set, which accepted sockets inherit: an answer leaves whole, in one
/// write, so waiting for more would only delay it, and setting it on every connection would cost a call each.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    /// As it is bound: a port given as 0 has become the one that the kernel chose.
    address: Address,
    options: ListenOptions,
    /// Removed when the last socket on it is dropped.
    file: Option<Arc<SocketFile>>,
}

impl Listener {
    /// Listens on an address that nobody else listens on, whether they would share it or not.
    pub fn bind(address: &Address, options: ListenOptions) -> Result<Self, BindError> {
        Self::open(address, options, PortSharing::Exclusive).map_err(|error| BindError::new(address, error))
    }

    /// As [`Listener::bind`], but beside those of `held` whose addresses overlap with this one: who moves from one
    /// address of a port to all of them, or back, holds both for a moment. They have to be this process's own.
    pub fn bind_overlapping(address: &Address, options: ListenOptions, held: &[&Listener]) -> Result<Self, BindError> {
        let fail = |error| BindError::new(address, error);
        let mut sharing = PortSharing::Exclusive;
        for listener in held.iter().filter(|held| held.address.overlaps(address)) {
            // The kernel asks both sides, and the newcomer before it is bound.
            SockRef::from(&listener.socket).set_reuse_port(true).map_err(fail)?;
            sharing = PortSharing::Shared;
        }
        Self::open(address, options, sharing).map_err(fail)
    }

    fn open(address: &Address, options: ListenOptions, sharing: PortSharing) -> io::Result<Self> {
        match address {
            Address::Tcp { ip: None, port } => {
                let all = |ip: IpAddr| tcp(SocketAddr::new(ip, *port), false, options, sharing);
                let socket = match all(Ipv6Addr::UNSPECIFIED.into()) {
                    Err(error) if lacks_ipv6(&error) => all(Ipv4Addr::UNSPECIFIED.into())?,
                    bound => bound?,
                };
                Self::tcp(socket, options)
            }
            Address::Tcp { ip: Some(ip), port } => {
                Self::tcp(tcp(SocketAddr::new(*ip, *port), true, options, sharing)?, options)
            }
            Address::Unix(path) => {
                let (socket, file) = socket_file::bind(path, options.backlog)?;
                Ok(Self {
                    socket,
                    address: address.clone(),
                    options,
                    file: Some(Arc::new(file)),
                })
            }
        }
    }

    /// A second descriptor of the same socket and queue: what one of them accepts, the other does not.
    pub fn try_clone(&self) -> io::Result<Self> {
        let socket = self.socket.try_clone()?;
        Ok(Self {
            socket,
            address: self.address.clone(),
            options: self.options,
            file: self.file.clone(),
        })
    }

    /// Another socket for another event loop: with `reuse_port` one with a queue of its own on the same TCP address;
    /// otherwise, and for a socket file, as [`Listener::try_clone`].
    ///
    /// The kernel deals connections out to all queues, attended or not: a sibling that nobody accepts from lets its
    /// share of the clients hang, and one that is closed resets those that wait in it. So make exactly one for each
    /// loop but the first, which takes the socket that was bound; and to hold on to one, or to give a restarted loop
    /// its queue back, clone it.
    pub fn sibling(&self) -> Result<Self, BindError> {
        let fail = |error| BindError::new(&self.address, error);
        if self.file.is_some() || !self.options.reuse_port || self.address.port().is_none() {
            return self.try_clone().map_err(fail);
        }
        let bound = local_address(&self.socket).map_err(fail)?;
        let only_v6 = bound.is_ipv4() || SockRef::from(&self.socket).only_v6().map_err(fail)?;
        tcp(bound, only_v6, self.options, PortSharing::Shared)
            .and_then(|socket| Self::tcp(socket, self.options))
            .map_err(fail)
    }

    /// Takes over a listening socket that was handed to this process, by systemd or by the process before it.
    pub fn from_descriptor(socket: OwnedFd) -> io::Result<Self> {
        if !system::listens(socket.as_fd())? {
            return Err(Errno::INVAL.into());
        }
        let flags = rustix::io::fcntl_getfd(&socket)?;
        rustix::io::fcntl_setfd(&socket, flags | FdFlags::CLOEXEC)?;
        let socket_ref = SockRef::from(&socket);
        socket_ref.set_nonblocking(true)?;
        let local = socket_ref.local_addr()?;
        if let Some(path) = local.as_pathname() {
            let address = Address::Unix(path.to_path_buf());
            return Ok(Self {
                socket,
                address,
                options: ListenOptions::default(),
                file: None,
            });
        }
        socket_ref.set_tcp_nodelay(true)?;
        let options = ListenOptions {
            reuse_port: socket_ref.reuse_port()?,
            ..ListenOptions::default()
        };
        Self::tcp(socket, options)
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The port that is bound, also where port 0 was asked for; a socket file has none.
    pub fn local_port(&self) -> Option<u16> {
        self.address.port()
    }

    /// Leaves the socket file in sharing when this listener is dropped, because another process goes on with it.
    pub fn keep_socket_file(&self) {
        if let Some(file) = &self.file {
            file.keep();
        }
    }

    fn tcp(socket: OwnedFd, options: ListenOptions) -> io::Result<Self> {
        let bound = local_address(&socket)?;
        let only_v6 = bound.is_ipv4() || SockRef::from(&socket).only_v6()?;
        Ok(Self {
            socket,
            address: Address::of(bound, only_v6),
            options,
            file: None,
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Listens on the first free port from `port` on, of at most `tries`; only a port in use makes it try the next.
pub fn bind_next_free(
    ip: Option<IpAddr>,
    port: u16,
    tries: u16,
    options: ListenOptions,
) -> Result<Listener, BindError> {
    let last = port.saturating_add(tries.saturating_sub(1));
    let mut candidate = port;
    loop {
        let address = Address::Tcp { ip, port: candidate };
        match Listener::open(&address, options, PortSharing::Exclusive) {
            // Who holds a port is a search through all processes, so it is made for the last one only.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && candidate < last => candidate += 1,
            result => return result.map_err(|error| BindError::new(&address, error)),
        }
    }
}

/// Whether a socket is the first on its address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PortSharing {
    Exclusive,
    Shared,
}

fn tcp(address: SocketAddr, only_v6: bool, options: ListenOptions, sharing: PortSharing) -> io::Result<OwnedFd> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    // Connections of an earlier process that are still being closed do not hold the port.
    socket.set_reuse_address(true)?;
    socket.set_tcp_nodelay(true)?;
    // SO_REUSEPORT also lets a second server of the same user in, unasked, and half of the connections go to it. So
    // the first socket is bound without it, which fails if anyone is there, and is opened to siblings afterwards.
    if sharing == PortSharing::Shared {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    if options.reuse_port {
        socket.set_reuse_port(true)?;
    }
    socket.listen(options.backlog)?;
    Ok(socket.into())
}

fn local_address(socket: &OwnedFd) -> io::Result<SocketAddr> {
    SockRef::from(socket)
        .local_addr()?
        .as_socket()
        .ok_or_else(|| Errno::AFNOSUPPORT.into())
}

/// Whether binding `[::]` failed because the system has no IPv6.
fn lacks_ipv6(error: &io::Error) -> bool {
    [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
