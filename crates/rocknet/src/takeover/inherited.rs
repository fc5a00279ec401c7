//! Sockets of a server that its process has taken over from a previous process.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use rocknet_io::socket::{Address, Listener};
use rocknet_quic::{Relay, Relays};

/// Sockets that a server adopts in place of binding them. The default is the empty set of a process
/// without a predecessor.
#[derive(Default)]
pub struct InheritedSockets {
    addresses: BTreeMap<Address, InheritedAddress>,
    is_takeover: bool,
    generation: u16,
    relays: Vec<Relay>,
}

/// Sockets of one address.
#[derive(Default)]
pub struct InheritedAddress {
    /// Listening sockets. All of them have to be served, because the kernel distributes the connections over them.
    pub streams: Vec<Listener>,
    /// UDP sockets of HTTP/3, which all have to be served as well.
    pub udp: Vec<OwnedFd>,
}

impl InheritedSockets {
    /// Creates the empty set of a process that takes over from another one. `generation`: number of this process for
    /// its QUIC connection IDs, which differs from that of its predecessor.
    pub fn new(generation: u16) -> InheritedSockets {
        InheritedSockets {
            addresses: BTreeMap::new(),
            is_takeover: true,
            generation,
            relays: Vec::new(),
        }
    }

    /// Returns the sockets of an address, which are added to.
    pub fn entry(&mut self, address: Address) -> &mut InheritedAddress {
        self.addresses.entry(address).or_default()
    }

    /// Takes the sockets of an address, as the configuration writes it; `None` if it has no listening socket.
    pub fn take(&mut self, address: &Address) -> Option<InheritedAddress> {
        self.addresses.remove(address).filter(|one| !one.streams.is_empty())
    }

    /// Moves the sockets of these addresses to a set of their own.
    pub fn split(&mut self, addresses: &[Address]) -> InheritedSockets {
        let own = addresses
            .iter()
            .filter_map(|address| self.addresses.remove_entry(address))
            .collect();
        InheritedSockets {
            addresses: own,
            is_takeover: self.is_takeover,
            generation: self.generation,
            relays: self.relays.clone(),
        }
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

    /// Returns a listening socket of each address that was not taken.
    pub fn listeners(&self) -> impl Iterator<Item = &Listener> {
        self.addresses.values().filter_map(|address| address.streams.first())
    }

    /// Returns true if this process takes over from another one.
    pub fn is_takeover(&self) -> bool {
        self.is_takeover
    }

    /// Returns the number of this process for its QUIC connection IDs; 0 without a predecessor.
    pub fn generation(&self) -> u16 {
        self.generation
    }

    /// Closes the sockets that were not taken, and removes their files. The connections in their queues are accepted by
    /// the previous process, which closes the sockets later.
    pub fn close_rest(self) {
        let rest = self.addresses.values().flat_map(|address| &address.streams);
        rest.for_each(Listener::own_socket_file);
    }
}
