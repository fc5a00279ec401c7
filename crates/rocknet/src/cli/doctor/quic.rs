//! Checks of HTTP/3: UDP ports and the buffers of their sockets.

use std::collections::BTreeSet;
use std::io;

use rocknet::snapshot::quic_addresses;
use rocknet_config::model::Config;
use rocknet_io::socket::Address;
use rocknet_io::udp;

use super::verdict::Check;

const SUBJECT: &str = "HTTP/3";

/// Opens and closes each UDP port, up to `max_ports`. Skips the ports in `served`, because the running server uses
/// them. A problem is not an error, because sites are also served over TCP.
pub(super) fn check(config: &Config, served: &BTreeSet<Address>, max_ports: usize) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut has_small_buffers = false;
    for address in quic_addresses(config).into_iter().take(max_ports) {
        if served.contains(&address) {
            checks.push(Check::good(SUBJECT, format!("UDP port of {address} is served")));
            continue;
        }
        // One socket suffices for the check; a server binds one for each worker.
        checks.push(match udp::bind(&address, 1) {
            Ok(sockets) => {
                has_small_buffers |= sockets.iter().any(udp::has_small_buffers);
                let found = format!("UDP port of {address} can be opened; a firewall in front has to let it pass");
                Check::good(SUBJECT, found)
            }
            // It may belong to a running RockNet whose addresses are unknown here.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Check::fair(SUBJECT, format!("UDP port of {address} is in use"))
            }
            Err(error) => Check::fair(
                SUBJECT,
                format!("UDP port of {address} cannot be opened, and HTTP/3 is not served there: {error}"),
            ),
        });
    }
    if has_small_buffers {
        let size = udp::SOCKET_BUFFER;
        checks.push(Check::fair(
            SUBJECT,
            format!(
                "the kernel limits the buffers of UDP sockets, so datagrams are lost under load: `sysctl -w \
                 net.core.rmem_max={size} net.core.wmem_max={size}`"
            ),
        ));
    }
    checks
}
