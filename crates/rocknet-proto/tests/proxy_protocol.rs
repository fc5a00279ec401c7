//! Tests the PROXY protocol: headers in every split, errors, and the guarantee that no byte after the header is read.

use std::net::SocketAddr;

use proptest::prelude::*;
use rocknet_proto::proxy_protocol::{
    MAX_V1_SIZE, MAX_V2_PAYLOAD, ParseProgress, ProxyHeader, ProxyHeaderError, SIGNATURE, parse, write_v1, write_v2,
};

/// Reads a header as a connection does: each call reads at most `step` bytes, and no more than the parser permits.
/// Returns the result and the number of unread bytes. The result is `None` if the header is incomplete.
fn run(bytes: &[u8], step: usize) -> (Option<Result<ProxyHeader, ProxyHeaderError>>, usize) {
    let mut header: Vec<u8> = Vec::new();
    loop {
        match parse(&header) {
            Ok(ParseProgress::Complete(proxy_header)) => return (Some(Ok(proxy_header)), bytes.len() - header.len()),
            Err(error) => return (Some(Err(error)), bytes.len() - header.len()),
            Ok(ParseProgress::More { wanted }) => {
                // A header of version 2 has 16 bytes before its payload.
                assert!(wanted > 0 && header.len() + wanted <= 16 + MAX_V2_PAYLOAD);
                let rest = &bytes[header.len()..];
                if rest.is_empty() {
                    return (None, 0);
                }
                header.extend_from_slice(&rest[..wanted.min(step).min(rest.len())]);
            }
        }
    }
}

/// Checks the result for the header in steps of several sizes, and that no byte after a valid header is read.
fn check(header: &[u8], expected: Result<ProxyHeader, ProxyHeaderError>) {
    const FOLLOWING: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
    let all = [header, FOLLOWING].concat();
    for step in [1, 2, 3, 7, usize::MAX] {
        let (found, unread) = run(&all, step);
        assert_eq!(
            found,
            Some(expected),
            "{:?} by {step}",
            header.escape_ascii().to_string()
        );
        if expected.is_ok() {
            assert_eq!(
                unread,
                FOLLOWING.len(),
                "{:?} by {step}",
                header.escape_ascii().to_string()
            );
        }
    }
}

fn client(source: &str, destination: &str) -> Result<ProxyHeader, ProxyHeaderError> {
    Ok(ProxyHeader::Client {
        source: source.parse().expect("an address"),
        destination: destination.parse().expect("an address"),
    })
}

/// Returns a header of version 2. `command` has the version in its upper four bits: 0x20 is LOCAL and 0x21 is PROXY.
/// `family` is 0x11 for TCP over IPv4 and 0x21 for TCP over IPv6.
fn v2_header(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    let length = u16::try_from(block.len()).expect("short").to_be_bytes();
    [&SIGNATURE[..], &[command, family], &length, block].concat()
}

#[test]
fn headers_of_version_1_are_parsed() {
    let v4 = client("192.0.2.1:56324", "192.0.2.2:443");
    let v6 = client("[2001:db8::1]:1", "[::1]:65535");
    for (line, expected) in [
        ("PROXY TCP4 192.0.2.1 192.0.2.2 56324 443", v4),
        ("PROXY TCP6 2001:db8::1 ::1 1 65535", v6),
        ("PROXY UNKNOWN", Ok(ProxyHeader::Unknown)),
        ("PROXY UNKNOWN ffff::1 whatever 1 2", Ok(ProxyHeader::Unknown)),
        ("PROXY UNKNOWNS x", Err(ProxyHeaderError::Line)),
        ("PROXY TCP4 2001:db8::1 ::1 1 2", Err(ProxyHeaderError::Address)),
        ("PROXY TCP6 192.0.2.1 192.0.2.2 1 2", Err(ProxyHeaderError::Address)),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 1", Err(ProxyHeaderError::Line)),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3", Err(ProxyHeaderError::Line)),
        ("PROXY TCP4  192.0.2.1 192.0.2.2 1 2", Err(ProxyHeaderError::Line)),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 1 65536", Err(ProxyHeaderError::Address)),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 01 2", Err(ProxyHeaderError::Address)),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 +1 2", Err(ProxyHeaderError::Address)),
        ("PROXY TCP4 192.0.2.01 192.0.2.2 1 2", Err(ProxyHeaderError::Address)),
        ("PROXY UDP4 192.0.2.1 192.0.2.2 1 2", Err(ProxyHeaderError::Line)),
    ] {
        check(format!("{line}\r\n").as_bytes(), expected);
    }
    for bad in [
        "PROXY TCP4 1.1.1.1 2.2.2.2 1 2\n",
        "PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r \n",
    ] {
        check(bad.as_bytes(), Err(ProxyHeaderError::Line));
    }
    // Headers at the limit and one byte above it. The text around the filler has 16 bytes.
    let longest = format!("PROXY UNKNOWN {}\r\n", "x".repeat(MAX_V1_SIZE - 16));
    assert_eq!(longest.len(), MAX_V1_SIZE);
    check(longest.as_bytes(), Ok(ProxyHeader::Unknown));
    let longer = format!("PROXY UNKNOWN {}\r\n", "x".repeat(MAX_V1_SIZE - 15));
    check(longer.as_bytes(), Err(ProxyHeaderError::Line));
}

#[test]
fn headers_of_version_2_are_parsed() {
    let v4 = [192, 0, 2, 1, 192, 0, 2, 2, 0xdc, 0x04, 0x01, 0xbb];
    let mut v6 = [0; 36];
    (v6[15], v6[31], v6[33], v6[35]) = (1, 2, 3, 4);
    check(&v2_header(0x21, 0x11, &v4), client("192.0.2.1:56324", "192.0.2.2:443"));
    check(&v2_header(0x21, 0x21, &v6), client("[::1]:3", "[::2]:4"));
    // Extensions are skipped.
    check(
        &v2_header(0x21, 0x11, &[&v4[..], &[4, 0, 1, 0]].concat()),
        client("192.0.2.1:56324", "192.0.2.2:443"),
    );
    check(&v2_header(0x20, 0x00, &[]), Ok(ProxyHeader::Local));
    check(&v2_header(0x20, 0x11, &[1, 2, 3]), Ok(ProxyHeader::Local));
    // Unspecified, UDP over IPv4 and IPv6, Unix stream and datagram sockets, and an undefined value. The
    // addresses of two Unix sockets have 216 bytes.
    for family in [0x00, 0x12, 0x22, 0x31, 0x32, 0xff] {
        check(&v2_header(0x21, family, &[0; 216]), Ok(ProxyHeader::Unknown));
    }
    // An unknown command of version 2, and other versions.
    for command in [0x22, 0x11, 0x31, 0x00] {
        check(&v2_header(command, 0x11, &v4), Err(ProxyHeaderError::Command));
    }
    check(&v2_header(0x21, 0x11, &v4[..11]), Err(ProxyHeaderError::Length));
    check(&v2_header(0x21, 0x21, &v6[..35]), Err(ProxyHeaderError::Length));
    check(
        &v2_header(0x21, 0x00, &vec![0; MAX_V2_PAYLOAD]),
        Ok(ProxyHeader::Unknown),
    );
    check(
        &v2_header(0x21, 0x00, &vec![0; MAX_V2_PAYLOAD + 1]),
        Err(ProxyHeaderError::Length),
    );
}

#[test]
fn other_bytes_are_errors_and_beginnings_are_incomplete() {
    for other in [
        "GET / HTTP/1.1\r\n",
        "\x16\x03\x01\x02\x00",
        "PROXX TCP4",
        "PRI * HTTP/2.0",
        "\r\n\r\n\0\r\nQUIX",
    ] {
        check(other.as_bytes(), Err(ProxyHeaderError::Signature));
    }
    for beginning in [
        &b""[..],
        b"P",
        b"PROXY",
        b"PROXY TCP4 1.1",
        &SIGNATURE[..5],
        &v2_header(0x21, 0x11, &[0; 12])[..20],
    ] {
        assert_eq!(
            run(beginning, usize::MAX).0,
            None,
            "{:?}",
            beginning.escape_ascii().to_string()
        );
    }
}

proptest! {
    /// The parser returns the addresses of a written header and leaves the bytes after it unread. `second` and `port`
    /// are the address and the port of the destination.
    #[test]
    fn written_headers_are_read_back(source: SocketAddr, port: u16, second in any::<[u8; 16]>(), step in 1..20_usize) {
        let destination: SocketAddr = match source {
            SocketAddr::V4(_) => (<[u8; 4]>::try_from(&second[..4]).expect("four"), port).into(),
            SocketAddr::V6(_) => (second, port).into(),
        };
        // The protocol transports neither scope nor flow label of an IPv6 address.
        let source = SocketAddr::new(source.ip(), source.port());
        let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
        let line = format!(
            "PROXY {family} {} {} {} {}\r\n", source.ip(), destination.ip(), source.port(), destination.port()
        );
        let octets = |address: SocketAddr| match address {
            SocketAddr::V4(v4) => v4.ip().octets().to_vec(),
            SocketAddr::V6(v6) => v6.ip().octets().to_vec(),
        };
        let ports = [source.port().to_be_bytes(), destination.port().to_be_bytes()].concat();
        let binary = v2_header(
            0x21,
            if source.is_ipv4() { 0x11 } else { 0x21 },
            &[octets(source), octets(destination), ports].concat(),
        );
        for header in [line.into_bytes(), binary] {
            let (found, unread) = run(&[&header[..], b"follow"].concat(), step);
            prop_assert_eq!(found, Some(Ok(ProxyHeader::Client { source, destination })));
            prop_assert_eq!(unread, 6);
        }
    }

    /// `signed` selects the beginning of version 2 instead of version 1.
    #[test]
    fn any_split_gives_the_same_result(bytes in prop::collection::vec(any::<u8>(), 0..200), signed: bool, step in 1..9_usize) {
        let bytes = if signed { [&SIGNATURE[..], &[0x21], &bytes].concat() } else { [b"PROXY ", &bytes[..]].concat() };
        let (whole, by_steps) = (run(&bytes, usize::MAX).0, run(&bytes, step).0);
        prop_assert_eq!(whole, by_steps);
    }
}

#[test]
fn headers_are_written_in_one_family() {
    // Columns: source, destination, line of version 1, and the addresses that a reader gets if they are not the first
    // two columns.
    for (source, destination, line, parsed) in [
        (
            "192.0.2.1:5000",
            "192.0.2.2:80",
            "PROXY TCP4 192.0.2.1 192.0.2.2 5000 80\r\n",
            None,
        ),
        (
            "[2001:db8::1]:0",
            "[::1]:65535",
            "PROXY TCP6 2001:db8::1 ::1 0 65535\r\n",
            None,
        ),
        (
            "[::ffff:192.0.2.1]:1",
            "192.0.2.2:2",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
            Some(("192.0.2.1:1", "192.0.2.2:2")),
        ),
        (
            "192.0.2.1:1",
            "[::1]:2",
            "PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n",
            Some(("[::ffff:192.0.2.1]:1", "[::1]:2")),
        ),
    ] {
        let proxy_header = client(source, destination).expect("a client");
        let (parsed_source, parsed_destination) = parsed.unwrap_or((source, destination));
        let (mut first, mut second) = (Vec::new(), Vec::new());
        write_v1(&mut first, &proxy_header);
        write_v2(&mut second, &proxy_header);
        assert_eq!(String::from_utf8_lossy(&first), line);
        check(&first, client(parsed_source, parsed_destination));
        check(&second, client(parsed_source, parsed_destination));
    }
    // Written header, and the header that a reader of version 1 gets.
    for (proxy_header, by_line) in [
        (ProxyHeader::Local, ProxyHeader::Unknown),
        (ProxyHeader::Unknown, ProxyHeader::Unknown),
    ] {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        write_v1(&mut first, &proxy_header);
        write_v2(&mut second, &proxy_header);
        check(&first, Ok(by_line));
        check(&second, Ok(proxy_header));
    }
}
