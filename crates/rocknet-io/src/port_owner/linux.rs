//! Finds the owner of a socket in `/proc`: looks up the inode of the socket in the kernel's tables, then searches the
//! processes for one that has this inode open.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::PortOwner;

/// Returns a process that listens on TCP `port` at an address that conflicts with `ip`, or at any address for `None`.
pub(super) fn of_port(ip: Option<IpAddr>, port: u16) -> Option<PortOwner> {
    of_ip_port(["/proc/net/tcp", "/proc/net/tcp6"], LISTEN, ip, port)
}

/// Returns a process that has bound UDP `port` at an address that conflicts with `ip`, or at any address for `None`.
pub(super) fn of_udp_port(ip: Option<IpAddr>, port: u16) -> Option<PortOwner> {
    of_ip_port(["/proc/net/udp", "/proc/net/udp6"], UNCONNECTED, ip, port)
}

/// Returns a process with a socket in one of the tables that is in `state` and conflicts with the address.
fn of_ip_port(tables: [&str; 2], state: &str, ip: Option<IpAddr>, port: u16) -> Option<PortOwner> {
    let inodes: Vec<u64> = tables
        .iter()
        .flat_map(|table| lines(table))
        .filter_map(|line| Bound::parse(std::str::from_utf8(&line).ok()?, state))
        .filter(|socket| socket.port == port && conflicts(socket.ip, ip))
        .map(|socket| socket.inode)
        .collect();
    process_with(&inodes)
}

/// Returns a process that listens on the Unix socket that was bound to `path`.
pub(super) fn of_socket_file(path: &Path) -> Option<PortOwner> {
    let inodes: Vec<u64> = lines("/proc/net/unix")
        .filter_map(|line| unix_inode(&line, path.as_os_str().as_bytes()))
        .collect();
    process_with(&inodes)
}

/// A bound socket in `/proc/net/tcp`, `tcp6`, `udp` or `udp6`.
#[derive(Debug, PartialEq, Eq)]
struct Bound {
    ip: IpAddr,
    port: u16,
    inode: u64,
}

impl Bound {
    /// Parses a line of the table; `None` for the heading, for an invalid line, and for a socket in another
    /// state than `wanted`.
    fn parse(line: &str, wanted: &str) -> Option<Self> {
        // The columns: number, local address, remote address, state, queues, timer, retransmissions, user, timeout,
        // inode.
        let mut fields = line.split_ascii_whitespace();
        let (ip, port) = fields.nth(1)?.split_once(':')?;
        let state = fields.nth(1)?;
        if state != wanted {
            return None;
        }
        let inode = fields.nth(5)?.parse().ok()?;
        Some(Self {
            ip: address(ip)?,
            port: u16::from_str_radix(port, 16).ok()?,
            inode,
        })
    }
}

/// Parses an address as the kernel prints it: 32-bit words, each in the byte order of the machine.
fn address(hex: &str) -> Option<IpAddr> {
    let word = |index: usize| {
        Some(
            u32::from_str_radix(hex.get(index * 8..index * 8 + 8)?, 16)
                .ok()?
                .to_ne_bytes(),
        )
    };
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (index, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(index)?);
            }
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

/// Returns whether a socket bound to `bound` can prevent another from binding `requested`; `None` is a request for all
/// addresses. The table does not show whether a socket at `[::]` is for IPv6 only, so it counts as a socket for both IP
/// versions. A request for `[::]` also counts as a request for both IP versions.
fn conflicts(bound: IpAddr, requested: Option<IpAddr>) -> bool {
    match requested {
        None => true,
        Some(requested) if requested.is_unspecified() => {
            requested.is_ipv6() || bound.is_ipv4() || bound.is_unspecified()
        }
        Some(requested) if bound.is_unspecified() => bound.is_ipv6() || requested.is_ipv4(),
        Some(requested) => bound == requested.to_canonical(),
    }
}

/// Parses the inode, the seventh column, from a line of `/proc/net/unix` for a socket bound to `path`; `None` for any
/// other line.
fn unix_inode(line: &[u8], path: &[u8]) -> Option<u64> {
    let fields = line.strip_suffix(path)?.strip_suffix(b" ")?;
    let mut fields = std::str::from_utf8(fields).ok()?.split_ascii_whitespace();
    let inode = fields.nth(6)?.parse().ok()?;
    // More fields follow if the line has a longer path that contains a space and happens to end in `path`.
    fields.next().is_none().then_some(inode)
}

/// Returns the lines of a table of the kernel; none if the table cannot be read.
fn lines(table: &str) -> impl Iterator<Item = Vec<u8>> + use<> {
    let reader = File::open(table)
        .ok()
        .map(|file| BufReader::new(file.take(MAX_TABLE_BYTES)));
    reader
        .into_iter()
        .flat_map(|reader| reader.split(b'\n').map_while(Result::ok))
}

/// Returns the process with the lowest number that has one of the sockets open. For a server that forks, that is
/// usually its first process.
fn process_with(inodes: &[u64]) -> Option<PortOwner> {
    if inodes.is_empty() {
        return None;
    }
    let links: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let deadline = Instant::now() + MAX_SEARCH;
    let mut pids: Vec<u32> = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    let pid = pids.into_iter().take_while(|_| Instant::now() < deadline).find(|pid| {
        // Skips processes of other users, whose descriptors cannot be read.
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            return false;
        };
        descriptors
            .flatten()
            .take_while(|_| Instant::now() < deadline)
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|link| links.iter().any(|socket| link.as_os_str() == socket.as_str()))
    })?;
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    // A process chooses its own name. Control characters are removed, because the name is printed on a terminal.
    let name = String::from_utf8_lossy(&name)
        .trim()
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    Some(PortOwner { pid, name })
}

/// `TCP_LISTEN` as the table prints it.
const LISTEN: &str = "0A";
/// State of a UDP socket that is not connected, as the table prints it.
const UNCONNECTED: &str = "07";
/// Maximum number of bytes read from a table. Listening sockets come first in the TCP tables, so the start of a
/// table is enough even on a machine with a million connections. A Unix socket beyond the limit is not found.
const MAX_TABLE_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum time of a search. The owner only improves an error message, so on a machine with very many processes the
/// message omits the owner.
const MAX_SEARCH: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_kernels_tables() {
        let loopback = u32::from_ne_bytes([127, 0, 0, 1]);
        let one = u32::from_ne_bytes([0, 0, 0, 1]);
        let rest = "00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000 100 0 0 10 0";
        // Line of a TCP table, and the address, port and inode of its socket (`None` if the socket does not listen).
        for (line, expected) in [
            (
                format!("   0: {loopback:08X}:1F90 {rest}"),
                Some(("127.0.0.1", 8080, 4711)),
            ),
            (
                format!("   0: {:024X}{one:08X}:0050 {rest}", 0),
                Some(("::1", 80, 4711)),
            ),
            (format!("   0: {:032X}:0050 {rest}", 0), Some(("::", 80, 4711))),
            (
                format!("   0: {loopback:08X}:1F90 {}", rest.replacen(" 0A ", " 01 ", 1)),
                None,
            ),
            (
                "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
                    .into(),
                None,
            ),
            // An address with a digit too few, in a line that ends early.
            (format!("   0: {loopback:07X}:1F90 {}", &rest[..10]), None),
            ("   0: €€€ x".into(), None),
            (String::new(), None),
        ] {
            let expected = expected.map(|(ip, port, inode)| Bound {
                ip: ip.parse().unwrap(),
                port,
                inode,
            });
            assert_eq!(Bound::parse(&line, LISTEN), expected, "{line}");
        }
        // Line of `/proc/net/unix`, and the inode if the line belongs to a socket bound to `/run/x.sock`.
        let row = "0000000000000000: 00000002 00000000 00010000 0001 01 4711";
        for (line, expected) in [
            (format!("{row} /run/x.sock"), Some(4711)),
            (format!("{row} /srv/run/x.sock"), None),
            (format!("{row} /srv /run/x.sock"), None),
            (row.to_owned(), None),
        ] {
            assert_eq!(unix_inode(line.as_bytes(), b"/run/x.sock"), expected, "{line}");
        }
    }
}
