//! Addresses as text: what is written for each request is not worth a formatter.

use std::net::IpAddr;

use rocknet_proto::h1::decimal;

/// Longest address: all of an IPv6 one, with a v4 one as its end.
const MAX_TEXT: usize = 45;

/// Appends an address.
pub fn write(address: IpAddr, out: &mut Vec<u8>) {
    out.reserve(MAX_TEXT);
    match address {
        IpAddr::V4(address) => {
            let mut dot: &[u8] = b"";
            for octet in address.octets() {
                out.extend_from_slice(dot);
                decimal(octet.into(), out);
                dot = b".";
            }
        }
        IpAddr::V6(address) => out.extend_from_slice(address.to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_they_are_displayed() {
        for text in [
            "0.0.0.0",
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
