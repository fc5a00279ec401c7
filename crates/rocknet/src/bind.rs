//! Binds the sockets of the listening addresses, for TCP and for QUIC.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rocknet_io::socket::{Address, BindError, BindErrorKind, ListenOptions, Listener};

use crate::listener::ListenerSockets;
use crate::takeover::AdoptedSockets;
use crate::transport::quic::QuicSocket;
use crate::transport::quic_secret::QuicKeys;

/// Binds a socket for each of the `workers` workers of each address. The kernel lets a socket share a port only with
/// sockets of the same user. All sockets of an address are therefore created together. At server start, this happens
/// before privileges are dropped.
///
/// `held` contains the listening sockets that this server already has. A new address may overlap with one of them, as
/// `*:80` does with `127.0.0.1:80`. Both sockets then share the port until the held one is closed. `adopted` contains
/// inherited sockets. Sockets bound to one of `addresses` are taken out and used; the others stay in `adopted`. `quic`
/// contains the addresses that also need UDP sockets. Addresses whose UDP port could not be bound are added to
/// `quic_failures`.
///
/// # Errors
///
/// Fails if a listening socket cannot be bound, and then closes the sockets that were bound before.
pub fn bind_all(
    addresses: &[Address],
    workers: usize,
    held: &[&Listener],
    adopted: &mut AdoptedSockets,
    quic: &BTreeSet<Address>,
    quic_keys: &QuicKeys,
    quic_failures: &mut Vec<QuicFailure>,
) -> Result<BTreeMap<Address, ListenerSockets>, BindError> {
    // `all` has the sockets of addresses with inherited sockets, and `new` lists the other addresses.
    let (mut all, mut new) = (BTreeMap::new(), Vec::new());
    for address in addresses {
        let mut tcp = adopted.take_listeners(address);
        let mut udp = match quic.contains(address) {
            true => adopted.take_udp(address),
            false => Vec::new(),
        };
        // Each UDP socket needs a worker.
        let needed = workers.max(udp.len());
        // Channels to the previous processes, which get the datagrams of their own QUIC connections.
        let relays = adopted.relays(address);
        let mut others = addresses
            .iter()
            .filter(|other| *other != address && quic.contains(other));
        // True if UDP sockets of an overlapping address use the same port. The port is then shared.
        let has_neighbour = others.any(|other| other.overlaps(address)) || adopted.has_udp_neighbour(address);
        // Returns a UDP socket for each TCP socket, or fewer if some cannot be bound. The first call takes over the
        // inherited UDP sockets and binds only the missing ones. A further call, for a TCP socket on another port,
        // binds all of them.
        let mut quic_sockets = move |tcp: &[Listener]| {
            let (keys, bound) = (quic_keys.get()?, tcp[0].address());
            let mut sockets = QuicSocket::adopt(bound, std::mem::take(&mut udp), &keys, &relays)?;
            let (missing, is_shared) = (
                tcp.len().saturating_sub(sockets.len()),
                has_neighbour || !sockets.is_empty(),
            );
            match QuicSocket::bind(bound, missing, &keys, is_shared, &relays) {
                Ok(added) => sockets.extend(added),
                Err(error) if sockets.is_empty() => return Err(error),
                // The kernel does not let a process share a port with sockets of another user. Workers without a UDP
                // socket serve the other protocols.
                Err(error) => {
                    tracing::warn!(%address, "{missing} workers do not serve HTTP/3, because they have no UDP socket: {error}");
                }
            }
            Ok(sockets)
        };
        if tcp.is_empty() {
            new.push((address, needed, quic_sockets));
            continue;
        }
        tcp.extend(siblings(address, &tcp[0], needed.saturating_sub(tcp.len())));
        let quic = match quic.contains(address) {
            true => quic_or_none(quic_sockets(&tcp), address, quic_failures),
            false => Vec::new(),
        };
        all.insert(address.clone(), ListenerSockets { tcp, quic });
    }
    let held: Vec<&Listener> = held
        .iter()
        .copied()
        .chain(adopted.listeners())
        .chain(all.values().map(|sockets: &ListenerSockets| &sockets.tcp[0]))
        .collect();
    let mut bound = Vec::new();
    for (address, needed, mut quic_sockets) in new {
        let mut attempts = 1;
        let sockets = loop {
            let options = ListenOptions {
                reuse_port: needed > 1,
                ..ListenOptions::default()
            };
            let mut tcp = vec![bind_with_retry(address, options, &held)?];
            for _ in 1..needed {
                tcp.push(tcp[0].sibling()?);
            }
            if !quic.contains(address) {
                break ListenerSockets { tcp, quic: Vec::new() };
            }
            let quic = quic_sockets(&tcp);
            // The kernel chose the port number for TCP, and the UDP port with that number may be in use.
            let is_any_port = matches!(address, Address::Tcp { port: 0, .. });
            if quic.is_err() && is_any_port && attempts < ANY_PORT_ATTEMPTS {
                attempts += 1;
                continue;
            }
            let quic = quic_or_none(quic, address, quic_failures);
            break ListenerSockets { tcp, quic };
        };
        bound.push((address.clone(), sockets));
    }
    drop(held);
    all.extend(bound);
    Ok(all)
}

/// Returns `count` further sockets of the address of a listening socket, for more workers. Each has an accept queue of
/// its own, unless the kernel refuses that because another user or the service manager has bound the first socket. The
/// further sockets then share the queue of the first. Returns fewer sockets if no descriptor is free.
pub fn siblings(address: &Address, first: &Listener, count: usize) -> Vec<Listener> {
    let own_queue = || {
        // `permit_siblings` changes an option of the socket itself, to which the clone refers too.
        let mut first = first.try_clone().ok()?;
        first.permit_siblings().ok()?;
        first.sibling().ok()
    };
    let mut siblings = Vec::new();
    while siblings.len() < count {
        match own_queue().map_or_else(|| first.try_clone(), Ok) {
            Ok(sibling) => siblings.push(sibling),
            Err(error) => {
                tracing::warn!(%address, "cannot create a listening socket for each additional worker: {error}");
                break;
            }
        }
    }
    siblings
}

/// Maximum number of ports of the kernel's choice that are tried for TCP and UDP together.
const ANY_PORT_ATTEMPTS: usize = 8;

/// UDP port that could not be bound, for instance because another program uses it.
pub struct QuicFailure {
    address: Address,
    error: io::Error,
}

impl QuicFailure {
    /// Logs the failure as an error.
    pub fn log(&self) {
        let QuicFailure { address, error } = self;
        tracing::error!(%address, "the UDP port cannot be opened, and HTTP/3 is not served there: {error}");
    }
}

/// Returns the UDP sockets of an address. If the port could not be bound, the address is served without HTTP/3, and the
/// failure is added to `failures`. It is not logged here, because at server start the logs are not open yet.
pub fn quic_or_none(
    bound: io::Result<Vec<QuicSocket>>,
    address: &Address,
    failures: &mut Vec<QuicFailure>,
) -> Vec<QuicSocket> {
    bound.unwrap_or_else(|error| {
        failures.push(QuicFailure {
            address: address.clone(),
            error,
        });
        Vec::new()
    })
}

/// Maximum wait for an address that this server has just released. A child process that is being started has a copy of
/// the old socket until its `exec`.
const LINGER_TIMEOUT: Duration = Duration::from_millis(300);
/// Interval between two attempts to bind an address that this server has just released.
const LINGER_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Binds a socket. If the address is in use, tries again until [`LINGER_TIMEOUT`] has passed.
fn bind_with_retry(address: &Address, options: ListenOptions, held: &[&Listener]) -> Result<Listener, BindError> {
    let start = Instant::now();
    loop {
        match Listener::bind_overlapping(address, options, held) {
            // If `held` is empty, this server has no socket yet, so none can linger. `InUse(None)` means that no other
            // process was found to hold the address.
            Err(error)
                if !held.is_empty()
                    && matches!(error.kind, BindErrorKind::InUse(None))
                    && start.elapsed() < LINGER_TIMEOUT =>
            {
                thread::sleep(LINGER_POLL_INTERVAL);
            }
            bound => return bound,
        }
    }
}
