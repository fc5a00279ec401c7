//! Addresses that a reload adds and removes. A new address uses the sockets that the server still has for it. Workers
//! of a removed address pass their sockets to the listener that covers it, such as `*:443` for `127.0.0.1:443`.
//!
//! Workers of the new listener and of older listeners that still serve connections can receive from the same UDP
//! socket. Each worker passes on datagrams for other workers.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;

use rocknet_io::socket::Address;

use crate::accept_loop::StopTimes;
use crate::listener::{ActiveListener, StoppingListener};
use crate::takeover::AdoptedSockets;

/// Listeners whose addresses the new configuration does not contain. Some were removed by an earlier configuration
/// but still serve connections.
pub(super) struct RemovedAddresses<'s> {
    pub removed: Vec<&'s ActiveListener>,
    pub stopping: &'s [StoppingListener],
}

impl RemovedAddresses<'_> {
    /// Returns duplicates of the sockets that are bound to the addresses in `new`. Such sockets exist if an earlier
    /// configuration contained the address. They also exist if it contained port 0, and the kernel chose the port of
    /// the new address. If the new workers had only sockets of their own, the kernel would also send clients to these
    /// older sockets.
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
        Ok(adopted)
    }
}

/// Returns the addresses of all UDP sockets of the server. Sockets at an address that overlaps with one of them have to
/// share the port.
pub(super) fn udp_addresses(
    listeners: &BTreeMap<Address, ActiveListener>,
    stopping: &[StoppingListener],
) -> Vec<Address> {
    let active = listeners.values().filter(|listener| listener.has_quic());
    let stopping = stopping.iter().filter(|listener| listener.has_quic());
    let active = active.map(ActiveListener::bound);
    active.chain(stopping.map(StoppingListener::bound)).cloned().collect()
}

/// Stops a listener whose address was removed. If another listener (`heir`) covers the address (as `*:443` covers
/// `127.0.0.1:443`), that listener accepts the connections that wait at the sockets.
pub(super) fn stop_removed(
    listener: ActiveListener,
    listeners: &mut BTreeMap<Address, ActiveListener>,
    times: StopTimes,
) -> StoppingListener {
    let heir = listeners
        .values_mut()
        .find(|heir| heir.bound().covers(listener.bound()));
    if let Some(heir) = heir {
        heir.take_sockets(listener.all_sockets().cloned().collect());
        if let (Some(quic), true) = (heir.quic_sockets().first(), listener.has_quic()) {
            // Connections that wait at the UDP socket are accepted before the stop.
            listener.replace_quic(quic);
        }
    }
    listener.stop(times)
}

/// Makes stopping workers use a UDP socket of a listener (`heir`) that covers their address. The kernel prefers a
/// socket that is bound to a single address. Without the switch, the stopping workers would therefore receive the
/// datagrams of all new connections and have to pass them on.
pub(super) fn release_covered_udp(stopping: &[StoppingListener], listeners: &BTreeMap<Address, ActiveListener>) {
    for listener in stopping.iter().filter(|listener| listener.has_own_udp()) {
        let heir = listeners.values().find(|heir| heir.bound().covers(listener.bound()));
        if let Some(quic) = heir.and_then(|heir| heir.quic_sockets().first()) {
            listener.replace_quic(quic);
        }
    }
}

/// Returns true if `bound` and `new` are the same port of the same address. For port 0, the kernel chooses another port
/// each time, so the result is false.
fn is_same_port(bound: &Address, new: &Address) -> bool {
    bound == new && new.port().is_some_and(|port| port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_0_is_another_port_each_time() {
        let tcp = |ip: &str, port| Address::Tcp {
            ip: ip.parse().ok(),
            port,
        };
        assert!(is_same_port(&tcp("*", 1), &tcp("*", 1)));
        assert!(!is_same_port(&tcp("*", 1), &tcp("127.0.0.1", 1)));
        assert!(!is_same_port(&tcp("*", 0), &tcp("*", 0)));
    }
}
