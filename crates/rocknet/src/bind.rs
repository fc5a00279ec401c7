//! Binds the sockets of the listening addresses, for TCP and for QUIC.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rocknet_io::inherited_sockets::InheritedSockets;
use rocknet_io::socket::{Address, BindError, BindErrorKind, ListenOptions, Listener};

use crate::listener::ListenerSockets;
use crate::transport::quic::QuicSocket;
use crate::transport::quic_secret::QuicKeys;

/// Binds a socket for each worker of each address. All sockets of an address are created together, at the start before
/// privileges are dropped, because the kernel lets a socket share a port only with sockets of the same user.
///
/// `held` are sockets of this server. An address that overlaps with one of them, as `*:80` does with `127.0.0.1:80`, is
/// shared until the held socket is closed. Sockets of `inherited` are used for the addresses that they are bound to,
/// and the rest stays in it. `quic` contains the addresses that also need UDP sockets. Addresses whose
/// UDP port could not be bound are added to `quic_failures`.
pub fn bind_all(
    addresses: &[Address],
    workers: usize,
    held: &[&Listener],
    inherited: &mut InheritedSockets,
    quic: &BTreeSet<Address>,
    quic_keys: &QuicKeys,
    quic_failures: &mut Vec<QuicFailure>,
) -> Result<BTreeMap<Address, ListenerSockets>, BindError> {
    let options = ListenOptions {
        reuse_port: workers > 1,
        ..ListenOptions::default()
    };
    let bind = |address: &Address| {
        let mut attempts = 1;
        loop {
            let mut tcp = inherited.take_listeners(address);
            let is_inherited = !tcp.is_empty();
            if !is_inherited {
                tcp.push(bind_with_retry(address, options, held)?);
            }
            while tcp.len() < workers {
                match tcp[0].sibling() {
                    Ok(sibling) => tcp.push(sibling),
                    // The kernel permits siblings to the account that created the first socket only.
                    Err(error) if is_inherited => {
                        let socket = tcp[0].try_clone().map_err(|_| error)?;
                        tcp.push(socket);
                    }
                    Err(error) => return Err(error),
                }
            }
            if !quic.contains(address) {
                return Ok((address.clone(), ListenerSockets { tcp, quic: Vec::new() }));
            }
            let keys = quic_keys.get();
            let inherited_udp = inherited.take_udp(address);
            let quic = keys.and_then(|keys| match inherited_udp.is_empty() {
                true => QuicSocket::bind(tcp[0].address(), tcp.len(), keys),
                false => Ok(QuicSocket::adopt(inherited_udp, keys)),
            });
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
    addresses.iter().map(bind).collect()
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
