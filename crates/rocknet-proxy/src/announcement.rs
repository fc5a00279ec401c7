//! The header of the PROXY protocol that a connection to an upstream begins with.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rocknet_config::model::ProxyProtocol;
use rocknet_io::socket::Address;
use rocknet_proto::proxy_protocol::{ProxyHeader, write_v1, write_v2};

use rocknet_handler::exchange::Client;

/// Whom a request is from that came in at `address`.
pub fn of(client: Client, address: &Address) -> ProxyHeader {
    match (client, address) {
        (
            Client::Ip { address: ip, port },
            Address::Tcp {
                ip: own,
                port: own_port,
            },
        ) => ProxyHeader::Client {
            source: SocketAddr::new(ip, port),
            // Of a socket that listens everywhere nobody asks by which address each connection came.
            destination: SocketAddr::new(own.unwrap_or(unspecified(ip)), *own_port),
        },
        (Client::Ip { address: ip, port }, Address::Unix(_)) => ProxyHeader::Client {
            source: SocketAddr::new(ip, port),
            destination: SocketAddr::new(unspecified(ip), 0),
        },
        (Client::Local, _) => ProxyHeader::Unknown,
    }
}

pub fn write(version: ProxyProtocol, announced: &ProxyHeader, out: &mut Vec<u8>) {
    match version {
        ProxyProtocol::V1 => write_v1(out, announced),
        ProxyProtocol::V2 => write_v2(out, announced),
    }
}

/// No address, of the family of this one.
fn unspecified(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}
