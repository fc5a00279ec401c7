//! Listeners as data, for `status`.

use rocknet_control::ListeningSocket;
use rocknet_io::socket::Address;

/// Returns the description of a listener. `http3`: true if its UDP port is served.
pub(super) fn listening_socket(configured: &Address, bound: &Address, http3: bool) -> ListeningSocket {
    match configured {
        Address::Tcp { ip, port } => ListeningSocket {
            file: None,
            ip: *ip,
            configured_port: *port,
            port: bound.port().unwrap_or(*port),
            http3,
        },
        Address::Unix(file) => ListeningSocket {
            file: Some(file.clone()),
            ..ListeningSocket::default()
        },
    }
}
