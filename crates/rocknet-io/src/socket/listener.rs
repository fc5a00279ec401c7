//! Listening sockets, bound and non-blocking.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::io::{Errno, FdFlags};
use socket2::{Domain, SockRef, Socket, Type};

use super::socket_file::{self, SocketFile};
use super::{Address, BACKLOG, BindError, system};

/// Options of a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// Maximum number of connections that wait to be accepted.
    pub backlog: i32,
    /// Permits [`Listener::sibling`] to bind more sockets to the same address, among which the kernel distributes
    /// connections (`SO_REUSEPORT`).
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

/// A listening socket. TCP sockets have TCP_NODELAY set, because a response is sent by one write, and waiting for more
/// data would only delay it. Accepted sockets inherit the option, which saves a system call for each connection.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    /// The bound address; port 0 has been replaced by the port that the kernel chose.
    address: Address,
    options: ListenOptions,
    /// The socket file, which is removed when the last listener bound to it is dropped. `None` for TCP, for a socket
    /// that the service manager opened, and for one of a previous server process if its socket file is missing.
    file: Option<Arc<SocketFile>>,
    /// True if the service manager has opened the socket.
    is_activated: bool,
}

impl Listener {
    /// Binds exclusively: fails if any other socket is bound to the address, even one with `SO_REUSEPORT`.
    ///
    /// # Errors
    ///
    /// Returns the cause. If another socket is bound to the address, the error names its owner as far as it can be
    /// found.
    pub fn bind(address: &Address, options: ListenOptions) -> Result<Self, BindError> {
        Self::open(address, options, PortSharing::Exclusive).map_err(|error| BindError::new(address, error))
    }

    /// Listens like [`Listener::bind`], but the address may overlap with the addresses of `held`, which have to be
    /// sockets of this process. Sets `SO_REUSEPORT` permanently on the sockets of `held` whose addresses overlap.
    /// Needed for a reload that replaces one address of a port by all addresses, or the reverse, because both sockets
    /// exist for a moment.
    ///
    /// # Errors
    ///
    /// As [`Listener::bind`].
    pub fn bind_overlapping(address: &Address, options: ListenOptions, held: &[&Listener]) -> Result<Self, BindError> {
        let fail = |error| BindError::new(address, error);
        let mut sharing = PortSharing::Exclusive;
        for listener in held.iter().filter(|held| held.address.overlaps(address)) {
            // The kernel requires the option on both sockets, and on the new one before it is bound.
            SockRef::from(&listener.socket).set_reuse_port(true).map_err(fail)?;
            sharing = PortSharing::Shared;
        }
        Self::open(address, options, sharing).map_err(fail)
    }

    /// Binds a socket to the address, and listens.
    fn open(address: &Address, options: ListenOptions, sharing: PortSharing) -> io::Result<Self> {
        match address {
            Address::Tcp { ip: None, port } => {
                // The socket at `[::]` accepts IPv4 connections too.
                let only_v6 = false;
                let all = |ip: IpAddr| open_tcp_socket(SocketAddr::new(ip, *port), only_v6, options, sharing);
                let socket = match all(Ipv6Addr::UNSPECIFIED.into()) {
                    Err(error) if lacks_ipv6(&error) => all(Ipv4Addr::UNSPECIFIED.into())?,
                    bound => bound?,
                };
                Self::from_tcp_socket(socket, options)
            }
            Address::Tcp { ip: Some(ip), port } => {
                let only_v6 = true;
                let socket = open_tcp_socket(SocketAddr::new(*ip, *port), only_v6, options, sharing)?;
                Self::from_tcp_socket(socket, options)
            }
            Address::Unix(path) => {
                let (socket, file) = socket_file::bind(path, options.backlog)?;
                Ok(Self {
                    socket,
                    address: address.clone(),
                    options,
                    file: Some(Arc::new(file)),
                    is_activated: false,
                })
            }
        }
    }

    /// Returns a second descriptor of the same socket and accept queue.
    ///
    /// # Errors
    ///
    /// Fails if no file descriptor is available (EMFILE, ENFILE).
    pub fn try_clone(&self) -> io::Result<Self> {
        let socket = self.socket.try_clone()?;
        Ok(Self {
            socket,
            address: self.address.clone(),
            options: self.options,
            file: self.file.clone(),
            is_activated: self.is_activated,
        })
    }

    /// Returns a socket on the same address for another event loop. With `reuse_port`, a TCP socket gets a sibling with
    /// its own accept queue. Otherwise, and for a socket file, the result is the same as that of
    /// [`Listener::try_clone`].
    ///
    /// The kernel distributes connections over all queues. If no thread accepts from a sibling, its share of the
    /// clients hangs. Closing a sibling resets the connections in its queue. So create exactly one sibling for each
    /// event loop except the first, which uses the bound socket. Clone a sibling to keep its queue for a restarted
    /// event loop.
    ///
    /// # Errors
    ///
    /// As [`Listener::bind`].
    pub fn sibling(&self) -> Result<Self, BindError> {
        let fail = |error| BindError::new(&self.address, error);
        if self.file.is_some() || !self.options.reuse_port || self.address.port().is_none() {
            return self.try_clone().map_err(fail);
        }
        let bound = local_address(&self.socket).map_err(fail)?;
        // An IPv4 socket has no `IPV6_V6ONLY`, so the value has no effect.
        let only_v6 = bound.is_ipv4() || SockRef::from(&self.socket).only_v6().map_err(fail)?;
        open_tcp_socket(bound, only_v6, self.options, PortSharing::Shared)
            .and_then(|socket| Self::from_tcp_socket(socket, self.options))
            .map_err(fail)
    }

    /// Takes over a listening socket that the service manager has opened. The file of a Unix socket is not removed when
    /// the listener is dropped.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the socket does not listen; other errors if the descriptor is not a TCP socket or a Unix socket with
    /// a file.
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
                is_activated: true,
            });
        }
        socket_ref.set_tcp_nodelay(true)?;
        let options = ListenOptions {
            reuse_port: socket_ref.reuse_port()?,
            ..ListenOptions::default()
        };
        Ok(Self {
            is_activated: true,
            ..Self::from_tcp_socket(socket, options)?
        })
    }

    /// Takes over a listening socket of a previous process of this server, like [`Listener::from_descriptor`]. Once
    /// [`Listener::own_socket_file`] was called, the file of a Unix socket is removed with the last listener bound to
    /// it.
    ///
    /// # Errors
    ///
    /// As [`Listener::from_descriptor`]. A missing file of a Unix socket is no error.
    pub fn take_over(socket: OwnedFd) -> io::Result<Self> {
        let mut listener = Self::from_descriptor(socket)?;
        listener.is_activated = false;
        if let Address::Unix(path) = &listener.address {
            listener.file = SocketFile::existing(path).ok().map(Arc::new);
        }
        Ok(listener)
    }

    /// Returns true if the service manager has opened the socket.
    pub fn is_activated(&self) -> bool {
        self.is_activated
    }

    /// Permits siblings even if the socket was bound without `reuse_port`. Without effect for a socket file, and for a
    /// socket of the service manager, whose unit file decides about siblings.
    ///
    /// # Errors
    ///
    /// Fails if the system call does.
    pub fn permit_siblings(&mut self) -> io::Result<()> {
        if self.address.port().is_some() && !self.options.reuse_port && !self.is_activated {
            SockRef::from(&self.socket).set_reuse_port(true)?;
            self.options.reuse_port = true;
        }
        Ok(())
    }

    /// Returns the bound address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the bound TCP port: the port that the kernel chose if port 0 was requested. `None` for a socket file.
    pub fn local_port(&self) -> Option<u16> {
        self.address.port()
    }

    /// Keeps the socket file when the last listener bound to it is dropped, because another process continues to use
    /// it.
    pub fn keep_socket_file(&self) {
        if let Some(file) = &self.file {
            file.keep();
        }
    }

    /// Ends the effect of [`Listener::keep_socket_file`]: the last listener that is bound to the socket file removes
    /// it on drop. Called when the previous owner of the socket leaves the file to this process.
    pub fn own_socket_file(&self) {
        if let Some(file) = &self.file {
            file.own();
        }
    }

    /// Wraps a listening TCP socket, with its bound address.
    fn from_tcp_socket(socket: OwnedFd, options: ListenOptions) -> io::Result<Self> {
        let bound = local_address(&socket)?;
        // An IPv4 socket has no `IPV6_V6ONLY`, so the value has no effect.
        let only_v6 = bound.is_ipv4() || SockRef::from(&socket).only_v6()?;
        Ok(Self {
            socket,
            address: Address::of(bound, only_v6),
            options,
            file: None,
            is_activated: false,
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

/// Listens on the first free port from `port` on, trying at most `tries` ports, but at least one.
///
/// # Errors
///
/// As [`Listener::bind`], for the last port tried. Any error other than a port in use ends the search.
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
            // Finding the owner of a port searches all processes, so it is done for the last port only.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && candidate < last => candidate += 1,
            result => return result.map_err(|error| BindError::new(&address, error)),
        }
    }
}

/// Decides whether a new socket may share its address with other sockets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PortSharing {
    /// Binding fails if any other socket is bound to the address.
    Exclusive,
    /// Binding succeeds beside other sockets with `SO_REUSEPORT`.
    Shared,
}

/// Opens a listening socket. `only_v6` is the option `IPV6_V6ONLY` of a socket for IPv6.
fn open_tcp_socket(
    address: SocketAddr,
    only_v6: bool,
    options: ListenOptions,
    sharing: PortSharing,
) -> io::Result<OwnedFd> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    // Permits binding while connections of a previous process are being closed.
    socket.set_reuse_address(true)?;
    socket.set_tcp_nodelay(true)?;
    // SO_REUSEPORT would also admit a second server of the same user, which would get half of the connections. So the
    // first socket is bound without the option, and binding fails if the port is in use. The option is set afterwards,
    // for siblings. A second RockNet still fails, because its first socket is bound without the option. Another program
    // of the same user that sets the option before `bind` is not kept out.
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

/// Returns the bound address. Fails unless the socket is an IP socket.
fn local_address(socket: &OwnedFd) -> io::Result<SocketAddr> {
    SockRef::from(socket)
        .local_addr()?
        .as_socket()
        .ok_or_else(|| Errno::AFNOSUPPORT.into())
}

/// Returns whether binding `[::]` failed because the system has no IPv6.
pub(crate) fn lacks_ipv6(error: &io::Error) -> bool {
    [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
