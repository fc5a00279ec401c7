//! Account of the program that listens at a TCP address of this machine.
//!
//! A client of the control API sends its token to this address without encryption. The program at the address is often
//! `ssh`, which forwards connections to a server elsewhere: `ssh -L 7625:127.0.0.1:7625 HOST`. While `ssh` is not
//! running, every account of this machine can listen at the port, and would get the token. Therefore the client looks
//! up the account before it sends the token.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Lists of the TCP sockets of this machine.
const LISTS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Value of the field `st` for a socket that listens.
const LISTEN: &str = "0A";

/// Returns the account of the program that listens at an address, if it is neither this account nor root. `Some(None)`:
/// the program is not in the lists, for example because it runs in a container. `None` also on systems other than
/// Linux, which have no such lists.
///
/// # Errors
///
/// Returns an error of the operating system if the lists cannot be read.
pub fn foreign(address: SocketAddr) -> io::Result<Option<Option<u32>>> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let own = rustix::process::geteuid().as_raw();
    let mut accounts = Vec::new();
    for list in LISTS {
        match fs::read_to_string(list) {
            Ok(text) => accounts.extend(text.lines().filter_map(|line| account(line, address))),
            // A machine without IPv6 has no second list.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(match accounts.iter().find(|account| !is_trusted(**account, own)) {
        Some(account) => Some(Some(*account)),
        None => accounts.is_empty().then_some(None),
    })
}

/// Returns true for this account and for root.
pub fn is_trusted(account: u32, own: u32) -> bool {
    account == own || account == 0
}

/// Returns the account in a line of [`LISTS`], if the socket in this line listens at the address or at all addresses.
/// The fields of a line are `sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid`, and others
/// after them.
fn account(line: &str, address: SocketAddr) -> Option<u32> {
    let mut fields = line.split_whitespace().skip(1);
    let (ip, port) = fields.next()?.split_once(':')?;
    if fields.nth(1)? != LISTEN || u16::from_str_radix(port, 16).ok()? != address.port() {
        return None;
    }
    let ip = listening_ip(ip)?;
    let mapped = match ip {
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
        ip => ip,
    };
    // Sockets of `::` also receive connections over IPv4.
    if mapped != address.ip() && !ip.is_unspecified() {
        return None;
    }
    fields.nth(3)?.parse().ok()
}

/// Parses an IP address in hexadecimal words of 32 bits, each in the byte order of the machine.
fn listening_ip(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        u32::from_str_radix(text.get(at..at + 8)?, 16)
            .ok()
            .map(u32::to_ne_bytes)
    };
    if text.len() == 8 {
        return Some(Ipv4Addr::from(word(0)?).into());
    }
    let mut bytes = [0; 16];
    for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
        part.copy_from_slice(&word(at * 8)?);
    }
    Some(Ipv6Addr::from(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn line(ip: &str, port: u16, state: &str, account: u32) -> String {
        format!(
            "   0: {ip}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  {account}        0 1"
        )
    }

    #[test]
    fn the_account_of_a_listener_is_found_by_its_address() {
        let address = SocketAddr::from(([127, 0, 0, 1], 7625));
        let word = |ip: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(ip));
        let (local, any) = (word([127, 0, 0, 1]), "00000000");
        let mapped = format!("{any}{any}{}{local}", word([0, 0, 0xff, 0xff]));
        let six = format!("{any}{any}{any}{}", word([0, 0, 0, 1]));
        for (line, expected) in [
            (line(&local, 7625, "0A", 1000), Some(1000)),
            (line(any, 7625, "0A", 1001), Some(1001)),
            (line(&any.repeat(4), 7625, "0A", 1002), Some(1002)),
            (line(&mapped, 7625, "0A", 1003), Some(1003)),
            (line(&six, 7625, "0A", 1000), None),
            (line(&local, 7626, "0A", 1000), None),
            (line(&local, 7625, "01", 1000), None),
            (line(&word([127, 0, 0, 2]), 7625, "0A", 1000), None),
            ("  sl  local_address rem_address".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(account(&line, address), expected, "{line}");
        }
        let address = SocketAddr::from((Ipv6Addr::LOCALHOST, 7625));
        assert_eq!(account(&line(&six, 7625, "0A", 1004), address), Some(1004));
        assert!(is_trusted(0, 1000) && is_trusted(1000, 1000) && !is_trusted(1001, 1000));
        assert!(!is_trusted(1000, 0));
    }

    #[test]
    fn only_listeners_of_this_account_and_of_root_are_trusted() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(foreign(address).unwrap(), None);
        drop(listener);
        assert_eq!(foreign(address).unwrap(), Some(None));
    }
}
