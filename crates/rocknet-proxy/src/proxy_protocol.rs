//! Writes the PROXY protocol header at the start of a connection to an upstream.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rocknet_config::model::ProxyProtocol;
use rocknet_io::socket::Address;
use rocknet_proto::proxy_protocol::{ProxyHeader, write_v1, write_v2};

use rocknet_handler::exchange::Client;

/// Returns the header content for a client that connected to the listener at `address`.
pub fn for_client(client: Client, address: &Address) -> ProxyHeader {
    match (client, address) {
        (
            Client::Ip { address: ip, port },
            Address::Tcp {
                ip: own,
                port: own_port,
            },
        ) => ProxyHeader::Client {
            source: SocketAddr::new(ip, port),
            // The local address of the connection is not known if the listener accepts connections on all addresses.
            destination: SocketAddr::new(own.unwrap_or(unspecified(ip)), *own_port),
        },
        // A trusted proxy has connected to the Unix socket and named its client.
        (Client::Ip { address: ip, port }, Address::Unix(_)) => ProxyHeader::Client {
            source: SocketAddr::new(ip, port),
            destination: SocketAddr::new(unspecified(ip), 0),
        },
        // The client has connected to a Unix socket, so it has no address.
        (Client::Local, _) => ProxyHeader::Unknown,
    }
}

/// Appends `header` to `out`, in this version of the protocol.
pub fn write(version: ProxyProtocol, header: &ProxyHeader, out: &mut Vec<u8>) {
    match version {
        ProxyProtocol::V1 => write_v1(out, header),
        ProxyProtocol::V2 => write_v2(out, header),
    }
}

/// Returns the unspecified address (`0.0.0.0` or `::`) of the same address family.
fn unspecified(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}
