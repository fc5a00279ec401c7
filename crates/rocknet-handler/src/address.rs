//! Writes IP addresses as text. Addresses are written for each request, and `std::fmt` costs more than this code.

use std::net::IpAddr;

/// Length of the longest IPv4 address, with a dot after each number, including the last.
const MAX_V4: usize = 16;

/// Appends the text of an address to `out`, as `Display` writes it.
pub fn write(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => {
            let (mut text, mut at) = ([0; MAX_V4], 0);
            let mut put = |byte| {
                text[at] = byte;
                at += 1;
            };
            for octet in address.octets() {
                if octet >= 100 {
                    put(b'0' + octet / 100);
                }
                if octet >= 10 {
                    put(b'0' + octet / 10 % 10);
                }
                put(b'0' + octet % 10);
                put(b'.');
            }
            out.extend_from_slice(&text[..at - 1]);
        }
        IpAddr::V6(address) => out.extend_from_slice(address.to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_by_display() {
        for text in [
            "0.0.0.0",
            "9.10.99.100",
            "101.109.200.9",
            "127.0.0.1",
            "255.255.255.255",
            "192.0.2.10",
            "::",
            "2001:db8::1",
            "::ffff:1.2.3.4",
        ] {
            let address: IpAddr = text.parse().expect("an address");
            let mut out = b"x".to_vec();
            write(address, &mut out);
            assert_eq!(String::from_utf8(out), Ok(format!("x{address}")));
        }
    }
}
