//! Binds the sockets of the listening addresses, for TCP and for QUIC.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rocknet_io::socket::{Address, BindError, BindErrorKind, ListenOptions, Listener};

use crate::listener::ListenerSockets;
use crate::takeover::{InheritedAddress, InheritedSockets};
use crate::transport::quic::QuicSocket;
use crate::transport::quic_secret::QuicKeys;

/// Binds a socket for each worker of each address. All sockets of an address are created together, at the start before
/// privileges are dropped, because the kernel lets a socket share a port only with sockets of the same user.
///
/// `held` are sockets of this server. An address that overlaps with one of them, as `*:80` does with `127.0.0.1:80`, is
/// shared until the held socket is closed. `quic` contains the addresses that also need UDP sockets. Addresses whose
/// UDP port could not be bound are added to `quic_failures`.
pub fn bind_all(
    addresses: &[Address],
    workers: usize,
    held: &[&Listener],
    quic: &BTreeSet<Address>,
    quic_keys: &QuicKeys,
    quic_failures: &mut Vec<QuicFailure>,
    inherited: &mut InheritedSockets,
) -> Result<BTreeMap<Address, ListenerSockets>, BindError> {
    let options = ListenOptions {
        reuse_port: workers > 1,
        ..ListenOptions::default()
    };
    let (mut adopted, mut new) = (BTreeMap::new(), Vec::new());
    for address in addresses {
        let Some(InheritedAddress { streams, udp }) = inherited.take(address) else {
            new.push(address);
            continue;
        };
        let mut tcp = streams;
        tcp.extend(siblings(address, &tcp[0], workers.saturating_sub(tcp.len())));
        let quic = if !quic.contains(address) {
            Vec::new()
        } else {
            let relays = inherited.relays(address);
            let sockets = quic_keys.get().and_then(|keys| match udp.is_empty() {
                true => QuicSocket::bind(tcp[0].address(), tcp.len(), &keys),
                false => Ok(QuicSocket::adopt(udp, &keys, &relays)),
            });
            quic_or_none(sockets, address, quic_failures)
        };
        adopted.insert(address.clone(), ListenerSockets { tcp, quic });
    }
    let held: Vec<&Listener> = held
        .iter()
        .copied()
        .chain(inherited.listeners())
        .chain(adopted.values().map(|sockets| &sockets.tcp[0]))
        .collect();
    let bind = |address: &Address| {
        let mut attempts = 1;
        loop {
            let mut tcp = vec![bind_with_retry(address, options, &held)?];
            for _ in 1..workers {
                tcp.push(tcp[0].sibling()?);
            }
            if !quic.contains(address) {
                return Ok((address.clone(), ListenerSockets { tcp, quic: Vec::new() }));
            }
            let keys = quic_keys.get();
            let quic = keys.and_then(|keys| QuicSocket::bind(tcp[0].address(), workers, &keys));
            // The kernel chose the port number for TCP, and the UDP port with that number may be in use.
            let is_any_port = matches!(address, Address::Tcp { port: 0, .. });
            if quic.is_err() && is_any_port && attempts < ANY_PORT_ATTEMPTS {
                attempts += 1;
                continue;
            }
            let quic = quic_or_none(quic, address, quic_failures);
            return Ok((address.clone(), ListenerSockets { tcp, quic }));
        }
    };
    let bound: Result<Vec<_>, BindError> = new.into_iter().map(bind).collect();
    drop(held);
    adopted.extend(bound?);
    Ok(adopted)
}

/// Binds `count` further sockets to the address of a listening socket, for more workers. There are fewer if the kernel
/// admits no further socket, because the first ones were bound by another user.
pub fn siblings(address: &Address, first: &Listener, count: usize) -> Vec<Listener> {
    let mut siblings = Vec::new();
    while siblings.len() < count {
        let first = first.try_clone().and_then(|mut first| {
            first.permit_siblings()?;
            Ok(first)
        });
        let sibling = first.map_err(|error| error.to_string());
        match sibling.and_then(|first| first.sibling().map_err(|error| error.to_string())) {
            Ok(sibling) => siblings.push(sibling),
            Err(error) => {
                tracing::warn!(%address, "the number of workers is not raised: {error}");
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
/// failure is added to `failures`. At the start, it is logged once the logs are open.
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
const LINGER_POLL_INTERVAL: Duration = Duration::from_millis(5);

fn bind_with_retry(address: &Address, options: ListenOptions, held: &[&Listener]) -> Result<Listener, BindError> {
    let start = Instant::now();
    loop {
        match Listener::bind_overlapping(address, options, held) {
            // At the first start no socket of this server can linger.
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
