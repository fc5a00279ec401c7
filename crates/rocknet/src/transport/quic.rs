//! QUIC connections: the sockets of a listener, and the TLS configuration of each handshake.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use rocknet_io::runtime::spawn;
use rocknet_io::socket::Address;
use rocknet_io::udp::{self, UdpSocket};
use rocknet_quic::{
    Connection, Forwarding, OpenTrace, Owner, QuicEndpoint, Relays, SelectConfig, SelectedConfig, SharedKeys,
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
    /// Identifies the worker in the connection IDs that it issues.
    owner: Owner,
    keys: SharedKeys,
    /// Passes datagrams to the worker that owns their connection.
    forwarding: Forwarding,
    relays: Relays,
}

impl QuicSocket {
    /// Binds a socket for each of `workers` workers.
    ///
    /// # Errors
    ///
    /// Fails if the UDP port cannot be bound.
    pub fn bind(address: &Address, workers: usize, keys: &GenerationKeys<'_>) -> io::Result<Vec<QuicSocket>> {
        let sockets = udp::bind(address, workers)?;
        Ok(QuicSocket::adopt(sockets, keys, &Relays::default()))
    }

    /// Takes over UDP sockets of one address, one for each worker. `relays` lead to the processes that served them.
    pub fn adopt(sockets: Vec<OwnedFd>, keys: &GenerationKeys<'_>, relays: &Relays) -> Vec<QuicSocket> {
        let forwarding = Forwarding::new(sockets.len());
        let generation = keys.generation;
        let numbered = (0..).zip(sockets);
        numbered
            .map(|(worker, socket)| QuicSocket {
                socket: Arc::new(socket),
                owner: Owner { generation, worker },
                keys: keys.keys.clone(),
                forwarding: forwarding.clone(),
                relays: relays.clone(),
            })
            .collect()
    }

    /// Returns the inboxes of the workers of the address.
    pub fn forwarding(&self) -> &Forwarding {
        &self.forwarding
    }

    /// Creates the endpoint of a worker. Called on its event loop, and again if the worker is restarted.
    ///
    /// # Errors
    ///
    /// Fails if the system lacks a descriptor or random bytes.
    pub fn endpoint(&self, worker: &Rc<Worker>) -> io::Result<QuicEndpoint> {
        let socket = UdpSocket::new(self.socket.try_clone()?)?;
        let forwarding = self.forwarding.clone();
        let mut endpoint = QuicEndpoint::new(socket, self.owner, &self.keys, forwarding, selector(worker))?;
        endpoint.set_traces(traces(worker));
        endpoint.set_relays(self.relays.clone());
        Ok(endpoint)
    }
}

impl AsFd for QuicSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Starts serving a connection whose handshake has begun.
pub fn serve(worker: &Rc<Worker>, connection: Connection) {
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
        let name = name.as_deref().filter(|_| is_own);
        let config = secure.quic_config(&self.certificates.store, name)?;
        Some(SelectedConfig {
            config,
            context: Arc::<crate::certificates::TlsPolicy>::clone(&secure.policy),
        })
    }
}
