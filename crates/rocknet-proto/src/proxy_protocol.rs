//! Parses and writes the header of the PROXY protocol, versions 1 and 2, in which a load balancer announces the client
//! of a connection (`proxy-protocol.txt` of HAProxy).
//!
//! A server must not read a byte beyond the header, because another layer, such as TLS, reads the bytes that follow. So
//! each call of the parser returns how many bytes may be read next.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Signature of version 2. No HTTP request and no TLS handshake begins with it.
pub const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Maximum size of a header of version 1, in bytes (§2.1).
pub const MAX_V1_SIZE: usize = 107;

/// Maximum accepted size after the fixed part of version 2, in bytes. Addresses need at most 216 bytes. They may be
/// followed by extensions of the sender (names, TLS information), which are skipped and far smaller than this limit.
pub const MAX_V2_PAYLOAD: usize = 4096;

/// Number of bytes that may be read before the version is known: the signature and command of version 2. Every header
/// is longer; the shortest, `PROXY UNKNOWN` with its line end, has 15 bytes.
const FIRST_READ_SIZE: usize = 13;

/// Size of the fixed part of version 2, in bytes.
const V2_FIXED_SIZE: usize = 16;

/// Progress of parsing a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseProgress {
    /// The header is incomplete.
    More {
        /// Bytes that may be read next without reading beyond the header.
        wanted: usize,
    },
    /// The header is complete.
    Complete(ProxyHeader),
}

/// Connection as announced by a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProxyHeader {
    /// The sender's own connection (command LOCAL), such as a health check.
    Local,
    /// A client without an announced TCP address, such as one on a Unix socket.
    Unknown,
    /// A client with an announced TCP address.
    Client {
        /// Address of the client.
        source: SocketAddr,
        /// Address that the client connected to.
        destination: SocketAddr,
    },
}

/// Error in a header. The connection must be closed, because its client is unknown (§2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ProxyHeaderError {
    /// The bytes do not begin with the signature of either version.
    Signature,
    /// A malformed or unterminated line of version 1.
    Line,
    /// An invalid address or port, or an address of a family other than the announced family.
    Address,
    /// An unknown version or command.
    Command,
    /// A header of version 2 that is too short for its addresses, or too long, or that is followed by bytes which the
    /// caller should not have read.
    Length,
}

impl ProxyHeaderError {
    /// Returns a noun phrase for logs, without any bytes of the peer.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Signature => "no PROXY protocol header",
            Self::Line => "a malformed PROXY protocol header of version 1",
            Self::Address => "an invalid address or port in a PROXY protocol header",
            Self::Command => "an unknown version or command in a PROXY protocol header",
            Self::Length => "a PROXY protocol header with a wrong length",
        }
    }
}

/// Parses the bytes of a header received so far, from its beginning.
///
/// # Errors
///
/// Fails if the bytes are not the beginning of a valid header, or if bytes follow the header. The connection must then
/// be closed.
pub fn parse(header: &[u8]) -> Result<ParseProgress, ProxyHeaderError> {
    let compared = header.len().min(SIGNATURE.len());
    if header[..compared] == SIGNATURE[..compared] {
        return parse_v2(header);
    }
    const V1_START: &[u8] = b"PROXY ";
    let compared = header.len().min(V1_START.len());
    if header[..compared] == V1_START[..compared] {
        return parse_v1(header);
    }
    Err(ProxyHeaderError::Signature)
}

/// Parses version 1.
///
/// ```text
/// "PROXY" SP ("TCP4" | "TCP6") SP source SP destination SP port SP port CRLF   |   "PROXY UNKNOWN" [SP anything] CRLF
/// ```
fn parse_v1(header: &[u8]) -> Result<ParseProgress, ProxyHeaderError> {
    if let Some(wanted) = FIRST_READ_SIZE.checked_sub(header.len()).filter(|&wanted| wanted > 0) {
        return Ok(ParseProgress::More { wanted });
    }
    let end = header.iter().position(|&byte| byte == b'\r' || byte == b'\n');
    let line = match end {
        Some(at) if at + 2 > MAX_V1_SIZE => return Err(ProxyHeaderError::Line),
        Some(at) if header[at..] == *b"\r\n" => &header[..at],
        Some(at) if header[at..] == *b"\r" => return Ok(ParseProgress::More { wanted: 1 }),
        Some(_) => return Err(ProxyHeaderError::Line),
        None if header.len() + 2 > MAX_V1_SIZE => return Err(ProxyHeaderError::Line),
        // At least the two bytes of the line end are missing.
        None => return Ok(ParseProgress::More { wanted: 2 }),
    };
    if line == b"PROXY UNKNOWN" || line.starts_with(b"PROXY UNKNOWN ") {
        return Ok(ParseProgress::Complete(ProxyHeader::Unknown));
    }
    let line = std::str::from_utf8(line).map_err(|_| ProxyHeaderError::Line)?;
    let parts: Vec<&str> = line.split(' ').collect();
    let &[_, family, source, destination, source_port, destination_port] = &parts[..] else {
        return Err(ProxyHeaderError::Line);
    };
    let address = |text: &str| -> Result<IpAddr, ProxyHeaderError> {
        match family {
            "TCP4" => text.parse::<Ipv4Addr>().map(Into::into),
            "TCP6" => text.parse::<Ipv6Addr>().map(Into::into),
            _ => return Err(ProxyHeaderError::Line),
        }
        .map_err(|_| ProxyHeaderError::Address)
    };
    Ok(ParseProgress::Complete(ProxyHeader::Client {
        source: SocketAddr::new(address(source)?, port(source_port)?),
        destination: SocketAddr::new(address(destination)?, port(destination_port)?),
    }))
}

/// Parses a port in decimal digits, without a sign or leading zeros.
fn port(text: &str) -> Result<u16, ProxyHeaderError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain).ok_or(ProxyHeaderError::Address)
}

/// Parses version 2.
///
/// ```text
/// signature(12) version|command(1) family|protocol(1) length(2) addresses and extensions (length)
/// version|command: 0x20 = LOCAL, 0x21 = PROXY; family|protocol: 0x11 = TCP over IPv4, 0x21 = TCP over IPv6
/// ```
fn parse_v2(header: &[u8]) -> Result<ParseProgress, ProxyHeaderError> {
    if let Some(&first) = header.get(SIGNATURE.len())
        && !matches!(first, 0x20 | 0x21)
    {
        return Err(ProxyHeaderError::Command);
    }
    if header.len() < FIRST_READ_SIZE {
        // The header may still be empty and become version 1, so the limit of the first read applies.
        return Ok(ParseProgress::More {
            wanted: FIRST_READ_SIZE - header.len(),
        });
    }
    let Some(&[command, family, high, low]) = header.get(SIGNATURE.len()..V2_FIXED_SIZE) else {
        return Ok(ParseProgress::More {
            wanted: V2_FIXED_SIZE - header.len(),
        });
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let is_local = command == 0x20;
    // Size of two addresses and two ports; 0 if no addresses are read.
    let needed = match family {
        _ if is_local => 0,
        0x11 => 12,
        0x21 => 36,
        _ => 0,
    };
    if length > MAX_V2_PAYLOAD || length < needed {
        return Err(ProxyHeaderError::Length);
    }
    if let Some(wanted) = (V2_FIXED_SIZE + length)
        .checked_sub(header.len())
        .filter(|&wanted| wanted > 0)
    {
        return Ok(ParseProgress::More { wanted });
    }
    if header.len() > V2_FIXED_SIZE + length {
        return Err(ProxyHeaderError::Length);
    }
    let block = &header[V2_FIXED_SIZE..];
    Ok(ParseProgress::Complete(match family {
        _ if is_local => ProxyHeader::Local,
        0x11 => ProxyHeader::Client {
            source: SocketAddr::new(array_at::<4>(block, 0).into(), u16_at(block, 8)),
            destination: SocketAddr::new(array_at::<4>(block, 4).into(), u16_at(block, 10)),
        },
        0x21 => ProxyHeader::Client {
            source: SocketAddr::new(array_at::<16>(block, 0).into(), u16_at(block, 32)),
            destination: SocketAddr::new(array_at::<16>(block, 16).into(), u16_at(block, 34)),
        },
        // Clients on Unix sockets, of datagram protocols or of unknown families are reported as unknown (§2.2).
        _ => ProxyHeader::Unknown,
    }))
}

/// Appends a header of version 1. This version has no command LOCAL, so `Local` is written as `UNKNOWN`.
pub fn write_v1(out: &mut Vec<u8>, header: &ProxyHeader) {
    let text = match same_family(header) {
        Some((source, destination)) => {
            let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
            let (from, to) = (source.port(), destination.port());
            format!("PROXY {family} {} {} {from} {to}\r\n", source.ip(), destination.ip())
        }
        None => "PROXY UNKNOWN\r\n".to_owned(),
    };
    out.extend_from_slice(text.as_bytes());
}

/// Appends a header of version 2.
pub fn write_v2(out: &mut Vec<u8>, header: &ProxyHeader) {
    const LOCAL: u8 = 0x20;
    const PROXY: u8 = 0x21;
    let mut block = Vec::new();
    let family = match same_family(header) {
        Some((source, destination)) => {
            for end in [source, destination] {
                match end.ip() {
                    IpAddr::V4(ip) => block.extend_from_slice(&ip.octets()),
                    IpAddr::V6(ip) => block.extend_from_slice(&ip.octets()),
                }
            }
            block.extend_from_slice(&source.port().to_be_bytes());
            block.extend_from_slice(&destination.port().to_be_bytes());
            if source.is_ipv4() { 0x11 } else { 0x21 }
        }
        // Unspecified family and protocol.
        None => 0,
    };
    let command = if *header == ProxyHeader::Local { LOCAL } else { PROXY };
    out.extend_from_slice(SIGNATURE);
    // `block` has at most 36 bytes, so the high byte of its length is 0.
    out.extend_from_slice(&[command, family, 0, block.len() as u8]);
    out.extend_from_slice(&block);
}

/// Returns both addresses in one family, because a header has only one family. The family is IPv4 if both addresses can
/// be expressed in it, else IPv6. Returns `None` if the header has no addresses.
fn same_family(header: &ProxyHeader) -> Option<(SocketAddr, SocketAddr)> {
    let &ProxyHeader::Client { source, destination } = header else {
        return None;
    };
    let mapped = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => IpAddr::V6(ip.to_ipv6_mapped()),
        ip => ip,
    };
    let (mut from, mut to) = (source.ip().to_canonical(), destination.ip().to_canonical());
    if from.is_ipv4() != to.is_ipv4() {
        (from, to) = (mapped(from), mapped(to));
    }
    Some((
        SocketAddr::new(from, source.port()),
        SocketAddr::new(to, destination.port()),
    ))
}

/// Returns `N` bytes at an offset. The caller has checked the length; bytes beyond the end would be read as 0.
fn array_at<const N: usize>(block: &[u8], at: usize) -> [u8; N] {
    let mut all = [0; N];
    for (to, from) in all.iter_mut().zip(block.iter().skip(at)) {
        *to = *from;
    }
    all
}

/// Returns the number of 16 bits at an offset, in network byte order.
fn u16_at(block: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array_at(block, at))
}
