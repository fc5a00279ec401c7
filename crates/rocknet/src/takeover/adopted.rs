//! Sockets that a server adopts in place of binding them: sockets of a previous process, and of the service manager.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use rocknet_io::inherited_sockets::InheritedSockets;
use rocknet_io::socket::{Address, Listener};
use rocknet_quic::{Relay, Relays};

/// Sockets that a server adopts in place of binding them. A socket of the previous process has precedence over one of
/// the service manager. The default is the empty set.
#[derive(Default)]
pub struct AdoptedSockets {
    /// Sockets of the previous process, by address as its configuration writes it.
    addresses: BTreeMap<Address, AdoptedAddress>,
    /// Sockets that the service manager has opened.
    activated: InheritedSockets,
    /// True if this process takes over from another one.
    is_takeover: bool,
    /// Number of this process for its QUIC connection IDs; 0 without a predecessor.
    generation: u16,
    /// Relays: channels to older processes, which get the datagrams of their own QUIC connections.
    relays: Vec<Relay>,
    /// Addresses at which this process has bound UDP sockets before.
    udp_neighbours: Vec<Address>,
}

/// Sockets of one address of the previous process.
#[derive(Default)]
pub struct AdoptedAddress {
    /// Listening sockets. All of them have to be served, because the kernel distributes the connections over them.
    pub streams: Vec<Listener>,
    /// UDP sockets of HTTP/3, which all have to be served as well.
    pub udp: Vec<OwnedFd>,
}

impl AdoptedSockets {
    /// Creates the empty set of a process that takes over from another one. `generation`: number of this process for
    /// its QUIC connection IDs, which differs from that of its predecessor.
    pub fn new(generation: u16) -> AdoptedSockets {
        AdoptedSockets {
            is_takeover: true,
            generation,
            ..AdoptedSockets::default()
        }
    }

    /// Adds the sockets that the service manager has opened.
    #[must_use]
    pub fn with_activated(self, activated: InheritedSockets) -> AdoptedSockets {
        AdoptedSockets { activated, ..self }
    }

    /// Returns the entry of an address of the previous process, to which the caller adds the sockets.
    pub fn entry(&mut self, address: Address) -> &mut AdoptedAddress {
        self.addresses.entry(address).or_default()
    }

    /// Takes the listening sockets of an address, as the configuration writes it.
    pub fn take_listeners(&mut self, address: &Address) -> Vec<Listener> {
        let previous = self.addresses.get_mut(address);
        let streams = previous.map(|previous| std::mem::take(&mut previous.streams));
        match streams.filter(|streams| !streams.is_empty()) {
            Some(streams) => streams,
            None => self.activated.take_listeners(address),
        }
    }

    /// Takes the UDP sockets of an address, as the configuration writes it.
    pub fn take_udp(&mut self, address: &Address) -> Vec<OwnedFd> {
        let previous = self.addresses.get_mut(address);
        let udp = previous.map(|previous| std::mem::take(&mut previous.udp));
        match udp.filter(|udp| !udp.is_empty()) {
            Some(udp) => udp,
            None => self.activated.take_udp(address),
        }
    }

    /// Moves the sockets of these addresses of the previous process to a set of their own.
    pub fn split(&mut self, addresses: &[Address]) -> AdoptedSockets {
        let own = addresses
            .iter()
            .filter_map(|address| self.addresses.remove_entry(address))
            .collect();
        AdoptedSockets {
            addresses: own,
            activated: InheritedSockets::default(),
            is_takeover: self.is_takeover,
            generation: self.generation,
            relays: self.relays.clone(),
            udp_neighbours: Vec::new(),
        }
    }

    /// Sets the addresses at which this process has bound UDP sockets before, for
    /// [`AdoptedSockets::has_udp_neighbour`].
    pub fn set_udp_neighbours(&mut self, addresses: Vec<Address>) {
        self.udp_neighbours = addresses;
    }

    /// Returns true if new UDP sockets at an address must share its port with other UDP sockets, because the addresses
    /// overlap, as `*:443` does with `127.0.0.1:443`. The new sockets then need `SO_REUSEPORT` before they are bound.
    /// The other sockets are those that this process has bound before, and adopted ones that were not taken.
    pub fn has_udp_neighbour(&self, address: &Address) -> bool {
        let adopted = self.addresses.iter().filter(|(_, sockets)| !sockets.udp.is_empty());
        let mut others = adopted.map(|(other, _)| other).chain(&self.udp_neighbours);
        others.any(|other| other.overlaps(address))
    }

    /// Adds a relay to an older process, which still serves its QUIC connections.
    pub fn add_relay(&mut self, relay: Relay) {
        self.relays.push(relay);
    }

    /// Returns the relays for the UDP sockets of an address.
    pub fn relays(&self, address: &Address) -> Relays {
        Relays::new(address.to_string(), self.relays.clone())
    }

    /// Returns all relays.
    pub fn all_relays(&self) -> &[Relay] {
        &self.relays
    }

    /// Returns one listening socket for each address of the previous process whose sockets were not taken.
    pub fn listeners(&self) -> impl Iterator<Item = &Listener> {
        self.addresses.values().filter_map(|address| address.streams.first())
    }

    /// Returns the addresses of the previous process whose UDP sockets were not taken.
    pub fn unused_udp(&self) -> Vec<Address> {
        let unused = self.addresses.iter().filter(|(_, sockets)| !sockets.udp.is_empty());
        unused.map(|(address, _)| address.clone()).collect()
    }

    /// Returns true if this process takes over from another one.
    pub fn is_takeover(&self) -> bool {
        self.is_takeover
    }

    /// Returns the number of this process for its QUIC connection IDs; 0 without a predecessor.
    pub fn generation(&self) -> u16 {
        self.generation
    }

    /// Closes the sockets of the service manager that were not taken, and returns their descriptions.
    pub fn close_unused(&mut self) -> Vec<String> {
        self.activated.close_unused()
    }

    /// Closes the sockets that were not taken. If a socket of the previous process has a socket file, the file is
    /// removed. The previous process accepts the connections in the queues of its sockets, and closes the sockets
    /// later.
    pub fn close_rest(self) {
        // A listener that owns its socket file removes the file when it is dropped.
        let rest = self.addresses.values().flat_map(|address| &address.streams);
        rest.for_each(Listener::own_socket_file);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener, UdpSocket};

    use super::*;

    /// Returns a listening socket on a free port, with its address.
    fn listener() -> (SocketAddr, OwnedFd) {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        (socket.local_addr().unwrap(), socket.into())
    }

    #[test]
    fn sockets_of_the_previous_process_come_before_those_of_the_service_manager() {
        // The service manager and the previous process pass the same socket of `shared`.
        let (shared, first) = listener();
        let (other, second) = listener();
        let mut activated = InheritedSockets::default();
        activated.add(first.try_clone().unwrap(), "web");
        activated.add(second, "other");
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let udp_address = Address::from(udp.local_addr().unwrap());
        activated.add(udp.into(), "quic");
        let mut adopted = AdoptedSockets::new(7).with_activated(activated);
        let shared = Address::from(shared);
        adopted
            .entry(shared.clone())
            .streams
            .push(Listener::take_over(first).unwrap());
        assert_eq!((adopted.generation(), adopted.is_takeover()), (7, true));

        let taken = adopted.take_listeners(&shared);
        assert_eq!((taken.len(), taken[0].is_activated()), (1, false));
        let taken = adopted.take_listeners(&Address::from(other));
        assert_eq!((taken.len(), taken[0].is_activated()), (1, true));
        assert!(adopted.take_listeners(&Address::from(other)).is_empty());
        assert_eq!(adopted.take_udp(&udp_address).len(), 1);
        let unused = adopted.close_unused();
        assert!(unused.len() == 1 && unused[0].starts_with("web: "), "{unused:?}");
    }
}
