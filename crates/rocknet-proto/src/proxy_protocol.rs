//! The PROXY protocol, versions 1 and 2: what a balancer says of a client before the client's first byte (haproxy's
//! `proxy-protocol.txt`).
//!
//! The header must be read off a connection without one byte more, because what follows is for somebody else, TLS maybe. So
//! each look at what has come says how many bytes may be read next.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// How version 2 begins: bytes that no request and no handshake begins with.
pub const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The longest header of version 1 (§2.1).
pub const LINE_MAX: usize = 107;

/// Most bytes behind the fixed part of version 2. Addresses take 216 at most; the rest is for what senders add (names,
/// facts of TLS), which is passed over, and comes nowhere near this.
pub const BLOCK_MAX: usize = 4096;

/// Both versions have so many bytes: the shortest header is `PROXY UNKNOWN` and a line end.
const FIRST: usize = 13;

/// The fixed part of version 2.
const FIXED: usize = 16;

/// What has come so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The header goes on for at least so many bytes.
    More { wanted: usize },
    /// All of it is there.
    Whole(Announced),
}

/// Whose connection it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Announced {
    /// The sender's own: it looks whether somebody is there.
    Own,
    /// Of somebody whose address cannot be told.
    Unknown,
    Client {
        source: SocketAddr,
        destination: SocketAddr,
    },
}

/// Why what came is no header. Nobody knows whose connection it is then, so it must be closed (§2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ProxyHeaderError {
    /// It begins like neither version.
    Signature,
    /// A line of version 1 that is not what it should be, or does not end.
    Line,
    /// An address that is none, or not of the family that is named.
    Address,
    /// A version or a command that does not exist.
    Command,
    /// A block of version 2 that is too short for its addresses, or too long.
    Length,
}

impl ProxyHeaderError {
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Signature => "no header of the PROXY protocol",
            Self::Line => "a malformed line of the PROXY protocol",
            Self::Address => "a malformed address in a header of the PROXY protocol",
            Self::Command => "an unknown version or command of the PROXY protocol",
            Self::Length => "a header of the PROXY protocol of a wrong length",
        }
    }
}

/// Looks at the header as far as it has come.
pub fn read(header: &[u8]) -> Result<Progress, ProxyHeaderError> {
    let known = header.len().min(SIGNATURE.len());
    if header[..known] == SIGNATURE[..known] {
        return read_block(header);
    }
    const WORD: &[u8] = b"PROXY ";
    let known = header.len().min(WORD.len());
    if header[..known] == WORD[..known] {
        return read_line(header);
    }
    Err(ProxyHeaderError::Signature)
}

/// ```text
/// "PROXY" SP ("TCP4" | "TCP6") SP source SP destination SP port SP port CRLF   |   "PROXY UNKNOWN" anything CRLF
/// ```
fn read_line(header: &[u8]) -> Result<Progress, ProxyHeaderError> {
    if let Some(wanted) = FIRST.checked_sub(header.len()).filter(|&wanted| wanted > 0) {
        return Ok(Progress::More { wanted });
    }
    let end = header.iter().position(|&byte| byte == b'\r' || byte == b'\n');
    let line = match end {
        Some(at) if at + 2 > LINE_MAX => return Err(ProxyHeaderError::Line),
        Some(at) if header[at..] == *b"\r\n" => &header[..at],
        Some(at) if header[at..] == *b"\r" => return Ok(Progress::More { wanted: 1 }),
        Some(_) => return Err(ProxyHeaderError::Line),
        None if header.len() + 2 > LINE_MAX => return Err(ProxyHeaderError::Line),
        None => return Ok(Progress::More { wanted: 2 }),
    };
    if line == b"PROXY UNKNOWN" || line.starts_with(b"PROXY UNKNOWN ") {
        return Ok(Progress::Whole(Announced::Unknown));
    }
    let line = std::str::from_utf8(line).map_err(|_| ProxyHeaderError::Line)?;
    let parts: Vec<&str> = line.split(' ').collect();
    let &[_, family, source, destination, from, to] = &parts[..] else {
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
    Ok(Progress::Whole(Announced::Client {
        source: SocketAddr::new(address(source)?, port(from)?),
        destination: SocketAddr::new(address(destination)?, port(to)?),
    }))
}

fn port(text: &str) -> Result<u16, ProxyHeaderError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain).ok_or(ProxyHeaderError::Address)
}

/// ```text
/// signature(12) version|command(1) family|protocol(1) length(2) addresses, and what senders add (length)
/// ```
fn read_block(header: &[u8]) -> Result<Progress, ProxyHeaderError> {
    if let Some(&first) = header.get(SIGNATURE.len())
        && !matches!(first, 0x20 | 0x21)
    {
        return Err(ProxyHeaderError::Command);
    }
    if header.len() < FIRST {
        // One that breaks off here may be a line as well: no further than that is surely a header's.
        return Ok(Progress::More {
            wanted: FIRST - header.len(),
        });
    }
    let Some(&[command, family, high, low]) = header.get(SIGNATURE.len()..FIXED) else {
        return Ok(Progress::More {
            wanted: FIXED - header.len(),
        });
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let is_own = command == 0x20;
    let needed = match family {
        _ if is_own => 0,
        0x11 => 12,
        0x21 => 36,
        _ => 0,
    };
    if length > BLOCK_MAX || length < needed {
        return Err(ProxyHeaderError::Length);
    }
    if let Some(wanted) = (FIXED + length).checked_sub(header.len()).filter(|&wanted| wanted > 0) {
        return Ok(Progress::More { wanted });
    }
    if header.len() > FIXED + length {
        return Err(ProxyHeaderError::Length);
    }
    let block = &header[FIXED..];
    Ok(Progress::Whole(match family {
        _ if is_own => Announced::Own,
        0x11 => Announced::Client {
            source: SocketAddr::new(bytes::<4>(block, 0).into(), number(block, 8)),
            destination: SocketAddr::new(bytes::<4>(block, 4).into(), number(block, 10)),
        },
        0x21 => Announced::Client {
            source: SocketAddr::new(bytes::<16>(block, 0).into(), number(block, 32)),
            destination: SocketAddr::new(bytes::<16>(block, 16).into(), number(block, 34)),
        },
        // Unix sockets, datagrams, and what nobody has thought of: as if it were not told (§2.2).
        _ => Announced::Unknown,
    }))
}

/// Appends a header of version 1.
pub fn write_line(out: &mut Vec<u8>, announced: &Announced) {
    let text = match ends(announced) {
        Some((source, destination)) => {
            let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
            let (from, to) = (source.port(), destination.port());
            format!("PROXY {family} {} {} {from} {to}\r\n", source.ip(), destination.ip())
        }
        // It has no word for the sender's own.
        None => "PROXY UNKNOWN\r\n".to_owned(),
    };
    out.extend_from_slice(text.as_bytes());
}

/// Appends a header of version 2.
pub fn write_block(out: &mut Vec<u8>, announced: &Announced) {
    const LOCAL: u8 = 0x20;
    const PROXY: u8 = 0x21;
    let mut block = Vec::new();
    let family = match ends(announced) {
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
        None => 0,
    };
    let command = if *announced == Announced::Own { LOCAL } else { PROXY };
    out.extend_from_slice(SIGNATURE);
    // No more than 36 bytes.
    out.extend_from_slice(&[command, family, 0, block.len() as u8]);
    out.extend_from_slice(&block);
}

/// Both ends in one family, which is all that a header can say: IPv4, unless one of them has no such address.
fn ends(announced: &Announced) -> Option<(SocketAddr, SocketAddr)> {
    let &Announced::Client { source, destination } = announced else {
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

/// The length was checked; what is not there is 0.
fn bytes<const N: usize>(block: &[u8], at: usize) -> [u8; N] {
    let mut all = [0; N];
    for (to, from) in all.iter_mut().zip(block.iter().skip(at)) {
        *to = *from;
    }
    all
}

fn number(block: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes(block, at))
}
