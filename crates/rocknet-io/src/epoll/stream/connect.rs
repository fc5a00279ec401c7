//! Connects to a socket file or an address.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use rustix::io::Errno;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use super::EpollStream;

impl EpollStream {
    /// Connects to a TCP address. Dropping the future aborts the attempt.
    ///
    /// # Errors
    ///
    /// Returns the error of `connect(2)`, for example `ConnectionRefused`.
    pub async fn connect(address: SocketAddr) -> io::Result<EpollStream> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        // Messages are written as a whole, so their last packet must not wait for an acknowledgement (Nagle's
        // algorithm).
        socket.set_tcp_nodelay(true)?;
        EpollStream::connect_socket(socket, &address.into()).await
    }

    /// Connects to a Unix socket file.
    ///
    /// # Errors
    ///
    /// Returns the error of `connect(2)`; `WouldBlock` if the backlog of the listening socket is full.
    pub async fn connect_to_file(path: &Path) -> io::Result<EpollStream> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        EpollStream::connect_socket(socket, &SockAddr::unix(path)?).await
    }

    /// Connects a new socket. Returns once the connection is established.
    async fn connect_socket(socket: Socket, address: &SockAddr) -> io::Result<EpollStream> {
        socket.set_nonblocking(true)?;
        let is_under_way = match socket.connect(address) {
            Ok(()) => false,
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INPROGRESS) => true,
            Err(error) => return Err(error),
        };
        let mut stream = EpollStream::new(socket.into())?;
        // The peer sends nothing before it has received a request, so the first receive waits for an event.
        stream.wait_for_first_receive();
        if is_under_way {
            let _ = stream.socket.writable().await?;
            if let Some(error) = SockRef::from(stream.socket.get_ref()).take_error()? {
                return Err(error);
            }
        }
        Ok(stream)
    }
}

#[cfg(test)]
mod tests;
