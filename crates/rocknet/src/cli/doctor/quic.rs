//! Checks of HTTP/3: UDP ports and the buffers of their sockets.

use std::fs;
use std::io;

use rocknet::snapshot::quic_addresses;
use rocknet_io::port_owner;
use rocknet_io::socket::Address;
use rocknet_io::udp;

use super::facts::DoctorFacts;
use super::holder;
use super::ports::MAX_PORTS;
use super::verdict::Check;

const SUBJECT: &str = "HTTP/3";

/// Limits of the kernel for the buffers of sockets: the name of each, and the file that shows it.
const LIMITS: [(&str, &str); 2] = [
    ("net.core.rmem_max", "/proc/sys/net/core/rmem_max"),
    ("net.core.wmem_max", "/proc/sys/net/core/wmem_max"),
];

/// Opens and closes each UDP port. Skips the ports that the running server uses. A problem is not an error, because
/// sites are also served over TCP.
pub(super) fn check(facts: &DoctorFacts<'_>) -> Vec<Check> {
    let addresses = quic_addresses(facts.config);
    if addresses.is_empty() {
        return Vec::new();
    }
    let mut has_small_buffers = false;
    let mut checks = Vec::new();
    for address in addresses.into_iter().take(MAX_PORTS) {
        if facts.running.addresses.udp.contains(&address) {
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
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => in_use(&address),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && facts.other_account.is_some() => {
                let what = format!("UDP port of {address}");
                checks.extend(facts.other_account.iter().map(|other| other.skipped(SUBJECT, &what)));
                continue;
            }
            Err(error) => Check::fair(
                SUBJECT,
                "udp-port-unusable",
                format!("UDP port of {address} cannot be opened, and HTTP/3 is not served there: {error}"),
            )
            .place(&address),
        });
    }
    checks.extend(buffers(has_small_buffers, |path| {
        fs::read_to_string(path).ok()?.trim().parse().ok()
    }));
    checks
}

/// Returns the check of a port that another socket uses, with the process that holds it.
fn in_use(address: &Address) -> Check {
    let owner = match address {
        Address::Tcp { ip, port } => port_owner::of_udp_port(*ip, *port),
        Address::Unix(_) => None,
    };
    let by = owner.as_ref().map(|owner| format!(" by {owner}")).unwrap_or_default();
    let found = format!("UDP port of {address} is in use{by}");
    let check = Check::fair(SUBJECT, "udp-port-in-use", found).place(&address);
    match (owner, address.port()) {
        (Some(owner), _) => check.command(holder::command(&owner)),
        (None, Some(port)) => check.command(format!("sudo ss -lunp 'sport = :{port}'")),
        (None, None) => check,
    }
}

/// Compares the limits of the kernel with the buffers that HTTP/3 requests. `has_small_buffers`: true if a socket got
/// less than it requested. `limit` reads a limit; `None` if the system has none.
fn buffers(has_small_buffers: bool, limit: impl Fn(&str) -> Option<usize>) -> Option<Check> {
    let size = udp::SOCKET_BUFFER;
    let low: Vec<String> = LIMITS
        .iter()
        .filter_map(|(name, path)| {
            let limit = limit(path).filter(|limit| *limit < size)?;
            Some(format!("{name} is {limit}"))
        })
        .collect();
    // Neither suffices alone: in a container the limits may be unknown, and no socket was opened here if the server
    // uses all ports.
    if low.is_empty() && !has_small_buffers {
        return None;
    }
    let command = format!("sudo sysctl -w net.core.rmem_max={size} net.core.wmem_max={size}");
    let which = match low.is_empty() {
        true => String::new(),
        false => format!(" ({}, and HTTP/3 requests {size})", low.join(", ")),
    };
    let found = format!(
        "the kernel limits the buffers of UDP sockets{which}, so datagrams are lost under load: run `{command}`, and \
         write both settings into /etc/sysctl.d/60-rocknet.conf, because the command lasts until the system restarts"
    );
    Some(Check::fair(SUBJECT, "udp-buffers-small", found).command(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_limits_of_the_kernel_are_named() {
        let size = udp::SOCKET_BUFFER;
        let limits = |receive, send| move |path: &str| if path.contains("rmem") { receive } else { send };
        assert!(buffers(false, limits(Some(size), Some(size))).is_none());
        assert!(buffers(false, limits(None, None)).is_none());
        let check = buffers(false, limits(Some(212_992), Some(size))).expect("a finding");
        assert_eq!(check.code, "udp-buffers-small");
        assert!(check.found.contains("net.core.rmem_max is 212992"), "{}", check.found);
        assert!(!check.found.contains("wmem_max is"), "{}", check.found);
        assert!(buffers(true, limits(None, None)).is_some());
    }
}
