//! Starts the protocol of an accepted socket: TLS or, without TLS, HTTP/1 or the version that the first bytes select. A
//! load balancer may send a PROXY protocol header first.

mod proxy_protocol;
pub mod quic;
pub mod quic_secret;
mod secure;
mod sniff;

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rocknet_io::runtime::spawn;
use rocknet_io::socket::{PeerAddress, local_address};
use rocknet_io::stream::Stream;

use crate::exchange::Client;
use crate::lifecycle::connection::ConnectionCore;
use crate::protocol::h1;
use crate::worker::{OpenConnection, Worker};

pub use secure::PendingHandshake;

/// Starts serving an accepted socket. The connection of a banned client is closed.
///
/// # Errors
///
/// Fails if the socket is no longer connected, or cannot be registered with the event loop.
pub fn serve(worker: &Rc<Worker>, socket: OwnedFd, peer: PeerAddress) -> io::Result<()> {
    let client = match peer {
        PeerAddress::Ip(address) => Client::Ip {
            address: address.ip(),
            port: address.port(),
        },
        PeerAddress::Unix => Client::Local,
    };
    if worker.is_banned(client) {
        worker.shared.registries.bans.count_connection();
        return Ok(());
    }
    let config = worker.config();
    let local = if config.sites.has_address_sites() {
        local_address(&socket)?.map(|address| address.ip())
    } else {
        None
    };
    let link = Stream::new(socket)?;
    if client.is_in(&config.snapshot.config.server.proxy_protocol) {
        let open = OpenConnection::new(worker);
        spawn(async move {
            let mut link = link;
            if let Some((client, local)) = proxy_protocol::read(open.worker(), &mut link, client, local).await {
                if open.worker().is_banned(client) {
                    return open.worker().shared.registries.bans.count_connection();
                }
                begin(open, link, client, local);
            }
        });
    } else {
        begin(OpenConnection::new(worker), link, client, local);
    }
    Ok(())
}

/// Starts serving a connection whose client is known. `open` counts the connection as open. `local`: local IP address
/// of the connection, set only if sites are selected by it.
fn begin(open: OpenConnection, link: Stream, client: Client, local: Option<IpAddr>) {
    let config = open.worker().config();
    if config.is_secure {
        spawn(PendingHandshake::new(open, link, client, local).run());
    } else if config.h2c || config.h2c_upgrade {
        spawn(sniff::serve(open, link, client, local));
    } else {
        spawn(h1::Connection::new(ConnectionCore::new(open, link, client, local)));
    }
}
