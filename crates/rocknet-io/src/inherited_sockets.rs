//! Sockets that the service manager has bound and passed to this process.

use std::os::fd::OwnedFd;

use socket2::{SockRef, Type};

use crate::socket::{Address, Listener};
use crate::udp;

/// Bound sockets by address. The server takes over each socket whose address is configured. It binds its own socket
/// for every other configured address.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    /// Listening sockets, each with its name for messages.
    listeners: Vec<(Listener, String)>,
    /// UDP sockets, each with its bound address and its name for messages.
    udp: Vec<(Address, OwnedFd, String)>,
    /// Descriptions of sockets that cannot be used.
    rejected: Vec<String>,
}

impl InheritedSockets {
    /// Adds a listening TCP or Unix socket, or a bound UDP socket. Other sockets are closed and reported by
    /// [`InheritedSockets::close_unused`]. `name` is the name of the socket in messages.
    pub fn add(&mut self, socket: OwnedFd, name: &str) {
        let added = match SockRef::from(&socket).r#type() {
            Ok(Type::DGRAM) => {
                udp::adopt(socket).map(|(address, socket)| self.udp.push((address, socket, name.to_owned())))
            }
            Ok(_) => Listener::from_descriptor(socket).map(|listener| self.listeners.push((listener, name.to_owned()))),
            Err(error) => Err(error),
        };
        if let Err(error) = added {
            self.reject(format!(
                "{name}: cannot be used as a listening socket or a UDP socket: {error}"
            ));
        }
    }

    /// Adds the description of a socket that cannot be used.
    pub fn reject(&mut self, description: String) {
        self.rejected.push(description);
    }

    /// Removes and returns the listening sockets that are bound to exactly this address. There are several if each has
    /// its own accept queue (`SO_REUSEPORT`). Each queue needs a worker that accepts from it.
    pub fn take_listeners(&mut self, address: &Address) -> Vec<Listener> {
        let matching = self
            .listeners
            .extract_if(.., |(listener, _)| listener.address() == address);
        matching.map(|(listener, _)| listener).collect()
    }

    /// Removes and returns the UDP sockets that are bound to exactly this address.
    pub fn take_udp(&mut self, address: &Address) -> Vec<OwnedFd> {
        let matching = self.udp.extract_if(.., |(bound, ..)| bound == address);
        matching.map(|(_, socket, _)| socket).collect()
    }

    /// Closes the sockets that were not taken, and returns their descriptions.
    pub fn close_unused(&mut self) -> Vec<String> {
        let mut all = std::mem::take(&mut self.rejected);
        let listeners = self.listeners.drain(..);
        all.extend(listeners.map(|(listener, name)| format!("{name}: no site listens on {}", listener.address())));
        let udp = self.udp.drain(..);
        all.extend(udp.map(|(address, _, name)| format!("{name}: no site serves HTTP/3 on UDP {address}")));
        all
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn sockets_are_found_by_their_address_and_the_rest_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.sock");
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        // A UDP socket may get the port number of the TCP socket. Each kind of socket is taken by a method of its own,
        // so the test passes nevertheless.
        let [udp, taken] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let (tcp_address, udp_address) = (tcp.local_addr().unwrap(), udp.local_addr().unwrap());
        let taken_address = Address::from(taken.local_addr().unwrap());
        let (connected, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut inherited = InheritedSockets::default();
        inherited.add(tcp.into(), "web");
        inherited.add(udp.into(), "quic");
        inherited.add(taken.into(), "taken");
        inherited.add(UnixListener::bind(&path).unwrap().into(), "file");
        inherited.add(connected.into(), "stream");

        let (tcp_address, udp_address) = (Address::from(tcp_address), Address::from(udp_address));
        assert_eq!(inherited.take_udp(&taken_address).len(), 1);
        assert!(inherited.take_udp(&taken_address).is_empty(), "a socket is taken once");
        assert_eq!(inherited.take_listeners(&tcp_address).len(), 1);
        assert!(
            inherited.take_listeners(&tcp_address).is_empty(),
            "a socket is taken once"
        );
        assert_eq!(inherited.take_listeners(&Address::Unix(path)).len(), 1);
        let unused = inherited.close_unused().join("; ");
        assert!(
            unused.contains("stream: cannot be used")
                && unused.contains(&format!("quic: no site serves HTTP/3 on UDP {udp_address}")),
            "{unused}"
        );
        assert!(!unused.contains("taken") && !unused.contains("web"), "{unused}");
        assert!(inherited.close_unused().is_empty());
    }
}
