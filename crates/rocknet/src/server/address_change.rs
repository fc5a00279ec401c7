//! Addresses that a reload adds and removes. A new address uses the sockets that the server still has for it, and
//! workers of a removed address pass their sockets to the listener that covers it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rocknet_io::socket::Address;

use crate::accept_loop::StopTimes;
use crate::listener::{ActiveListener, ListenerSockets, StoppingListener};
use crate::takeover::AdoptedSockets;
use crate::transport::quic::QuicSocket;

/// Maximum wait until the workers of a removed address stop reading their UDP sockets, so that the workers of a new
/// address read them instead. A running worker stops in its next poll.
const LEAVE_GRACE: Duration = Duration::from_secs(1);

/// Listeners whose addresses the new configuration does not contain: those that it removes, and those that an earlier
/// configuration has removed and that still serve connections.
pub(super) struct RemovedAddresses<'s> {
    pub removed: Vec<&'s ActiveListener>,
    pub stopping: &'s [StoppingListener],
}

impl RemovedAddresses<'_> {
    /// Returns duplicates of the sockets that are bound to the addresses in `new`. If the workers of a removed address
    /// and those of a new one had sockets of their own, the kernel would distribute clients over both.
    pub fn sockets_for(&self, new: &[Address]) -> io::Result<AdoptedSockets> {
        let mut adopted = AdoptedSockets::default();
        for address in new {
            let sockets = self.removed.iter().flat_map(|listener| listener.all_sockets());
            for socket in sockets.filter(|socket| is_same_port(socket.address(), address)) {
                adopted.entry(address.clone()).streams.push(socket.try_clone()?);
            }
            let is_same = |bound: &Address| is_same_port(bound, address);
            let removed = self
                .removed
                .iter()
                .find(|listener| is_same(listener.bound()) && listener.has_quic());
            let mut udp = Vec::new();
            match removed {
                Some(listener) => {
                    for socket in listener.quic_sockets() {
                        udp.push(socket.as_fd().try_clone_to_owned()?);
                    }
                }
                // The last listener that was removed has all sockets of earlier ones.
                None => {
                    let stopping = self.stopping.iter().rev().filter(|listener| is_same(listener.bound()));
                    udp = stopping
                        .map(StoppingListener::udp_sockets)
                        .find(|sockets| !sockets.is_empty())
                        .unwrap_or_default();
                }
            }
            if !udp.is_empty() {
                adopted.entry(address.clone()).udp = udp;
            }
        }
        let removed = self.removed.iter().filter(|listener| listener.has_quic());
        let stopping = self.stopping.iter().filter(|listener| listener.has_own_udp());
        adopted.set_udp_neighbours(
            removed
                .map(|listener| listener.bound())
                .chain(stopping.map(StoppingListener::bound))
                .cloned()
                .collect(),
        );
        Ok(adopted)
    }

    /// Tells the new UDP sockets the workers that have served their ports before.
    pub fn name_predecessors(&self, bound: &mut BTreeMap<Address, ListenerSockets>) {
        for sockets in bound.values_mut() {
            let address = sockets.tcp[0].address();
            let removed = self
                .removed
                .iter()
                .filter(|listener| listener.bound().overlaps(address));
            let removed = removed
                .flat_map(|listener| listener.quic_sockets())
                .map(QuicSocket::number);
            let stopping = self
                .stopping
                .iter()
                .filter(|listener| listener.bound().overlaps(address));
            let stopping = stopping.flat_map(|listener| listener.quic_workers().iter().copied());
            let predecessors: Arc<[u16]> = removed.chain(stopping).collect();
            for socket in &mut sockets.quic {
                socket.set_predecessors(&predecessors);
            }
        }
    }

    /// Lets the workers that have the same UDP sockets as those in `bound` leave the datagrams to them, or with `false`
    /// for `leaves` read them again. Returns when all workers do so, at the latest after a second.
    pub fn leave_udp(&self, bound: &[Address], leaves: bool) {
        let (applied, all_applied) = mpsc::channel();
        let is_new = |address: &Address| bound.iter().any(|new| is_same_port(address, new));
        for listener in self.removed.iter().filter(|listener| is_new(listener.bound())) {
            listener.receive_quic(!leaves, &applied);
        }
        for listener in self.stopping.iter().filter(|listener| is_new(listener.bound())) {
            if listener.has_own_udp() {
                listener.receive_quic(!leaves, &applied);
            }
        }
        drop(applied);
        // Never receives a value: the channel is closed once all workers have dropped their end.
        let _ = all_applied.recv_timeout(LEAVE_GRACE);
    }
}

/// Stops a listener whose address was removed. If another listener covers the address (as `*:443` covers
/// `127.0.0.1:443`), it accepts the connections that wait at the sockets.
pub(super) fn stop_removed(
    listener: ActiveListener,
    listeners: &mut BTreeMap<Address, ActiveListener>,
    times: StopTimes,
) -> StoppingListener {
    let heir = listeners
        .values_mut()
        .find(|heir| covers(heir.bound(), listener.bound()));
    let quic = heir.as_ref().and_then(|heir| heir.quic_sockets().first().cloned());
    if let Some(heir) = heir {
        heir.take_sockets(listener.all_sockets().cloned().collect());
    }
    let quic = quic.filter(|_| listener.has_quic());
    if let Some(quic) = &quic {
        // Connections that wait at the UDP socket are accepted before the stop.
        listener.replace_quic(quic);
    }
    let mut stopping = listener.stop(times);
    if quic.is_some() {
        stopping.forget_udp_sockets();
    }
    stopping
}

/// Decides which workers read the UDP sockets of listeners that are stopping. If a listener in use has the same address
/// or covers it, its workers read, and pass on the datagrams of older connections. Otherwise the stopping workers read.
pub(super) fn assign_udp(stopping: &mut [StoppingListener], listeners: &BTreeMap<Address, ActiveListener>) {
    let (applied, _) = mpsc::channel();
    for listener in stopping
        .iter_mut()
        .filter(|listener| !listener.quic_workers().is_empty())
    {
        let mut readers = listeners.values().filter(|reader| reader.has_quic());
        let reader =
            readers.find(|reader| reader.bound() == listener.bound() || covers(reader.bound(), listener.bound()));
        match reader {
            Some(reader) if covers(reader.bound(), listener.bound()) && listener.has_own_udp() => {
                listener.replace_quic(&reader.quic_sockets()[0]);
            }
            reader => listener.receive_quic(reader.is_none(), &applied),
        }
    }
}

/// Returns true if both are the same port of the same address. Port 0 is another port each time.
fn is_same_port(bound: &Address, new: &Address) -> bool {
    bound == new && new.port().is_some_and(|port| port != 0)
}

/// Returns true if connections to `one` match `all` too, and `all` is bound to more addresses.
fn covers(all: &Address, one: &Address) -> bool {
    let is_wider = match (all, one) {
        (Address::Tcp { ip: None, .. }, Address::Tcp { ip: Some(_), .. }) => true,
        (Address::Tcp { ip: Some(all), .. }, Address::Tcp { ip: Some(one), .. }) => {
            all.is_unspecified() && !one.is_unspecified()
        }
        _ => false,
    };
    is_wider && all.overlaps(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_of_a_port_cover_each_of_them() {
        let tcp = |ip: &str, port| Address::Tcp {
            ip: ip.parse().ok(),
            port,
        };
        for (all, one, expected) in [
            (tcp("*", 1), tcp("127.0.0.1", 1), true),
            (tcp("*", 1), tcp("::", 1), true),
            (tcp("*", 1), tcp("127.0.0.1", 2), false),
            (tcp("0.0.0.0", 1), tcp("127.0.0.1", 1), true),
            (tcp("::", 1), tcp("127.0.0.1", 1), false),
            (tcp("::", 1), tcp("::1", 1), true),
            (tcp("127.0.0.1", 1), tcp("*", 1), false),
            (tcp("127.0.0.1", 1), tcp("127.0.0.1", 1), false),
            (tcp("*", 1), Address::Unix("x".into()), false),
        ] {
            assert_eq!(covers(&all, &one), expected, "{all:?} {one:?}");
        }
        assert!(is_same_port(&tcp("*", 1), &tcp("*", 1)));
        assert!(!is_same_port(&tcp("*", 0), &tcp("*", 0)));
    }
}
