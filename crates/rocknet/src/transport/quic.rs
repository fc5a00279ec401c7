//! QUIC connections: the sockets of a listener, and the TLS configuration of each handshake.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::{Arc, Weak};

use rocknet_io::runtime::spawn;
use rocknet_io::socket::Address;
use rocknet_io::udp::{self, UdpSocket};
use rocknet_quic::{
    Connection, OpenTrace, QuicEndpoint, Relays, SelectConfig, SelectedConfig, SharedKeys, WorkerInbox,
};
use rustls::server::ClientHello;

use super::quic_secret::GenerationKeys;
use crate::certificates::CertificateManager;
use crate::protocol::h3;
use crate::site_table::SiteTable;
use crate::snapshot::Snapshot;
use crate::worker::{OpenConnection, Worker};

/// UDP socket of one worker, with the state that it shares with the other workers of its address. Clones refer to the
/// same socket.
#[derive(Clone)]
pub struct QuicSocket {
    socket: Arc<OwnedFd>,
    /// Number of the process in its connection IDs. Processes that serve a port at the same time have different
    /// numbers.
    generation: u16,
    /// Receives datagrams of the worker's connections from other workers. The number of the inbox identifies the worker
    /// in the connection IDs that the worker issues.
    inbox: WorkerInbox,
    /// Keys, which are the same for all processes of the server.
    keys: SharedKeys,
    /// Channels to older processes, for the datagrams of their connections.
    relays: Relays,
}

impl QuicSocket {
    /// Binds a socket for each of `workers` workers. `is_shared`: true if the server has other sockets at this port.
    /// `relays` are the channels to older processes whose connections may use the port.
    ///
    /// # Errors
    ///
    /// Fails if the UDP port cannot be bound, or the server has more workers than connection IDs can name.
    pub fn bind(
        address: &Address,
        workers: usize,
        keys: &GenerationKeys<'_>,
        is_shared: bool,
        relays: &Relays,
    ) -> io::Result<Vec<QuicSocket>> {
        let sockets = match is_shared {
            _ if workers == 0 => Vec::new(),
            true => udp::bind_overlapping(address, workers)?,
            false => udp::bind(address, workers)?,
        };
        QuicSocket::adopt(address, sockets, keys, relays)
    }

    /// Takes over UDP sockets of the bound address `address`, one for each worker. `relays` are the channels to the
    /// processes that served the sockets.
    ///
    /// # Errors
    ///
    /// Fails if the server has more workers than connection IDs can name.
    pub fn adopt(
        address: &Address,
        sockets: Vec<OwnedFd>,
        keys: &GenerationKeys<'_>,
        relays: &Relays,
    ) -> io::Result<Vec<QuicSocket>> {
        let adopt = |socket| {
            Ok(QuicSocket {
                socket: Arc::new(socket),
                generation: keys.generation,
                inbox: keys
                    .forwarding
                    .register(address)
                    .ok_or_else(|| io::Error::other("too many workers serve HTTP/3"))?,
                keys: keys.keys.clone(),
                relays: relays.clone(),
            })
        };
        sockets.into_iter().map(adopt).collect()
    }

    /// Returns a reference that does not keep the socket open.
    pub fn downgrade(&self) -> WeakQuicSocket {
        WeakQuicSocket(Arc::downgrade(&self.socket))
    }

    /// Uses the socket of a worker whose listening address covers the address of this worker. The previous socket of
    /// this worker closes when its last reference is dropped.
    pub fn use_socket_of(&mut self, other: &QuicSocket) {
        self.socket = Arc::clone(&other.socket);
    }

    /// Creates a socket for the event loop of this thread.
    ///
    /// # Errors
    ///
    /// Fails if the system lacks a descriptor.
    pub fn udp_socket(&self) -> io::Result<UdpSocket> {
        UdpSocket::new(self.socket.try_clone()?)
    }

    /// Creates the endpoint of a worker. Called on its event loop, and again if the worker is restarted.
    ///
    /// # Errors
    ///
    /// Fails if the system lacks a descriptor or random bytes.
    pub fn endpoint(&self, worker: &Rc<Worker>) -> io::Result<QuicEndpoint> {
        let (socket, inbox) = (self.udp_socket()?, self.inbox.clone());
        let mut endpoint = QuicEndpoint::new(socket, self.generation, &self.keys, inbox, selector(worker))?;
        endpoint.set_traces(traces(worker));
        endpoint.set_relays(self.relays.clone());
        Ok(endpoint)
    }
}

/// Reference to the UDP socket of a worker that does not keep the socket open.
pub struct WeakQuicSocket(Weak<OwnedFd>);

impl WeakQuicSocket {
    /// Returns true if the socket is open.
    pub fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Returns a duplicate of the socket, if it is open and a descriptor is free.
    pub fn duplicate(&self) -> Option<OwnedFd> {
        self.0.upgrade()?.try_clone().ok()
    }
}

impl AsFd for QuicSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Starts serving a connection whose handshake has begun.
pub fn serve(worker: &Rc<Worker>, connection: Connection) {
    // The local IP address matters only if sites are selected by it.
    let local = if worker.config().sites.has_address_sites() {
        connection.local_ip()
    } else {
        None
    };
    spawn(h3::Connection::new(OpenConnection::quic(worker), connection, local));
}

/// Applies the worker's current configuration to new connections.
///
/// # Errors
///
/// Fails if the cryptographic library reports an error.
pub fn reconfigure(endpoint: &mut QuicEndpoint, worker: &Worker) -> io::Result<()> {
    endpoint.set_traces(traces(worker));
    endpoint.set_selector(selector(worker))
}

/// Returns the object that opens the traces of connections; `None` if they are not traced.
fn traces(worker: &Worker) -> Option<Arc<dyn OpenTrace>> {
    let config = worker.config();
    let folder = config.snapshot.config.server.qlog.as_ref()?;
    Some(worker.shared.registries.qlog.traces_in(folder))
}

/// Returns the selector that chooses the TLS configuration of a handshake. It uses the worker's current configuration.
fn selector(worker: &Worker) -> Arc<dyn SelectConfig> {
    let config = worker.config();
    Arc::new(SiteSelector {
        sites: Arc::clone(&config.sites),
        snapshot: Arc::clone(&config.snapshot),
        certificates: Arc::clone(&worker.shared.certificates),
    })
}

/// Selects the configuration of the site that a client names.
struct SiteSelector {
    sites: Arc<SiteTable>,
    snapshot: Arc<Snapshot>,
    certificates: Arc<CertificateManager>,
}

impl SelectConfig for SiteSelector {
    fn select(&self, hello: &ClientHello<'_>, local: Option<IpAddr>) -> Option<SelectedConfig> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        let (site, is_own) = self.sites.site_of_server_name(local, name.as_deref())?;
        if !self.sites.serves_http3(site) {
            return None;
        }
        let secure = self.snapshot.sites.get(site as usize)?.secure.as_ref()?;
        // Only a name of the site selects one of its certificates.
        let name = name.as_deref().filter(|_| is_own);
        let config = secure.quic_config(&self.certificates.store, name)?;
        Some(SelectedConfig {
            config,
            context: Arc::<crate::certificates::TlsPolicy>::clone(&secure.policy),
        })
    }
}
