//! Messages between the two processes of an upgrade. Each message is one datagram with at most one descriptor.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rocknet_io::socket::Address;
use zeroize::Zeroizing;

use super::optional_message::{MAX_MESSAGE, OptionalMessage};

/// Version of the messages. A program that knows only other versions refuses to take over.
pub(super) const VERSION: u32 = 1;

/// Environment variable of the new process. It is set if the standard input of the process is the channel of an
/// upgrade.
pub(super) const VARIABLE: &str = "ROCKNET_TAKEOVER";

/// Maximum number of sockets that are passed: some thousand addresses with some workers each.
pub(super) const MAX_SOCKETS: usize = 65_536;

/// Server to which a socket belongs. The program has several servers in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketGroup {
    /// Server of the sites.
    Sites,
    /// A server of the control API.
    Control,
}

/// Kind of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKind {
    /// Listening socket for byte streams, at a port or a socket file.
    Stream,
    /// Like `Stream`, but opened by the service manager, which owns the socket file.
    Activated,
    /// UDP socket of HTTP/3.
    Udp,
}

/// Socket for the new process.
#[derive(Debug)]
pub struct OfferedSocket {
    /// Kind of the socket.
    pub kind: SocketKind,
    /// Address as the configuration writes it: with port 0, the socket has another port.
    pub address: Address,
    /// Duplicate of the socket.
    pub socket: OwnedFd,
}

/// Beginning of [`ToOld::UnusedUdp`]. The program of the old process may ignore the message.
const UNUSED_UDP: &[u8] = b"optional unused-udp 1 ";

/// Message of the old process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToNew {
    /// Begins the list of sockets.
    Begin {
        version: u32,
        /// Number of the new process, which its QUIC connection IDs contain.
        generation: u16,
        /// True if the old process was started as root, and has dropped root's rights because its configuration had no
        /// scripts. The new process must not run scripts either, because they would run as the account of the server.
        has_dropped_root: bool,
    },
    /// State folder of the server. The default depends on the account that has started the server.
    StateFolder(PathBuf),
    /// A socket, whose descriptor comes with the message.
    Socket {
        group: SocketGroup,
        kind: SocketKind,
        address: Address,
    },
    /// A channel to an old process for datagrams of its QUIC connections, which contain the number `generation`. The
    /// descriptor of the channel comes with the message.
    Relay { generation: u16 },
    /// The helper that starts programs as other accounts, whose channel comes with the message. `accounts` messages of
    /// the variant `Account` follow. A program that does not know this message must not take over, because it would run
    /// scripts as the account of the server.
    Helper {
        /// Version of the messages of the helper.
        version: u32,
        /// Number of accounts.
        accounts: usize,
        /// Number of the account for scripts whose site names no account: its position among the messages that follow,
        /// from 0. `None`: such scripts do not run.
        default: Option<u8>,
    },
    /// An account for which the helper starts programs.
    Account { uid: u32, gid: u32, name: String },
    /// A message that a program may ignore; `None` if this version does not know it.
    Optional(Option<OptionalMessage>),
    /// Ends the list.
    End,
    /// The new process may serve now.
    Go,
}

/// Message of the new process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToOld {
    /// The new process does not read the UDP sockets of this address, so the old process continues to read them.
    UnusedUdp(Address),
    /// The new process is prepared: it only has to start its workers.
    Prepared,
    /// The new process serves.
    Ready,
    /// The new process has failed, for this reason.
    Failed(String),
    /// A message that a program may ignore, and that this version does not know.
    Unknown,
}

impl ToNew {
    /// Returns the bytes of the message, in zeroized memory, because they may contain secrets.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let message = match self {
            ToNew::Optional(Some(message)) => return message.encode(),
            ToNew::Optional(None) => OptionalMessage::PREFIX.to_vec(),
            ToNew::Begin {
                version,
                generation,
                has_dropped_root,
            } => format!("begin {version} {generation} {}", u8::from(*has_dropped_root)).into_bytes(),
            ToNew::Socket { group, kind, address } => {
                let group = match group {
                    SocketGroup::Sites => "sites",
                    SocketGroup::Control => "control",
                };
                let kind = match kind {
                    SocketKind::Stream => "stream",
                    SocketKind::Activated => "activated",
                    SocketKind::Udp => "udp",
                };
                let mut message = format!("socket {group} {kind} ").into_bytes();
                message.extend(address_bytes(address));
                message
            }
            ToNew::StateFolder(folder) => [b"state ", folder.as_os_str().as_bytes()].concat(),
            ToNew::Relay { generation } => format!("relay {generation}").into_bytes(),
            ToNew::Helper {
                version,
                accounts,
                default,
            } => {
                let default = default.map_or("-".to_owned(), |default| default.to_string());
                format!("helper {version} {accounts} {default}").into_bytes()
            }
            ToNew::Account { uid, gid, name } => format!("account {uid} {gid} {name}").into_bytes(),
            ToNew::End => b"end".to_vec(),
            ToNew::Go => b"go".to_vec(),
        };
        message.into()
    }

    /// Decodes a message; `None` if this version does not know it.
    pub fn decode(message: &[u8]) -> Option<ToNew> {
        if let Some(folder) = message.strip_prefix(b"state ") {
            return Some(ToNew::StateFolder(OsStr::from_bytes(folder).into()));
        }
        if let Some(optional) = message.strip_prefix(OptionalMessage::PREFIX) {
            return Some(ToNew::Optional(OptionalMessage::decode(optional)));
        }
        // The fourth part may contain spaces: the path of a socket file, or the name of an account.
        let mut words = message.splitn(4, |&byte| byte == b' ');
        let message = match words.next()? {
            b"begin" => ToNew::Begin {
                version: number(words.next()?)?,
                generation: number(words.next()?)?,
                has_dropped_root: words.next()? == b"1",
            },
            b"socket" => ToNew::Socket {
                group: match words.next()? {
                    b"sites" => SocketGroup::Sites,
                    b"control" => SocketGroup::Control,
                    _ => return None,
                },
                kind: match words.next()? {
                    b"stream" => SocketKind::Stream,
                    b"activated" => SocketKind::Activated,
                    b"udp" => SocketKind::Udp,
                    _ => return None,
                },
                address: address(words.next()?)?,
            },
            b"relay" => ToNew::Relay {
                generation: number(words.next()?)?,
            },
            b"helper" => ToNew::Helper {
                version: number(words.next()?)?,
                accounts: number(words.next()?)?,
                default: match words.next()? {
                    b"-" => None,
                    digits => Some(number(digits)?),
                },
            },
            b"account" => ToNew::Account {
                uid: number(words.next()?)?,
                gid: number(words.next()?)?,
                name: String::from_utf8(words.next()?.to_vec()).ok()?,
            },
            b"end" => ToNew::End,
            b"go" => ToNew::Go,
            _ => return None,
        };
        Some(message)
    }
}

impl ToOld {
    /// Returns the bytes of the message. An error text that is too long is cut.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            ToOld::UnusedUdp(address) => [UNUSED_UDP, &address_bytes(address)].concat(),
            ToOld::Unknown => OptionalMessage::PREFIX.to_vec(),
            ToOld::Prepared => b"prepared".to_vec(),
            ToOld::Ready => b"ready".to_vec(),
            ToOld::Failed(error) => {
                let mut message = b"failed ".to_vec();
                message.extend(error.as_bytes());
                message.truncate(MAX_MESSAGE);
                message
            }
        }
    }

    /// Decodes a message; `None` if this version does not know it.
    pub fn decode(message: &[u8]) -> Option<ToOld> {
        match message {
            b"prepared" => Some(ToOld::Prepared),
            b"ready" => Some(ToOld::Ready),
            _ if message.starts_with(OptionalMessage::PREFIX) => {
                let unused = message.strip_prefix(UNUSED_UDP).and_then(address);
                Some(unused.map_or(ToOld::Unknown, ToOld::UnusedUdp))
            }
            _ => {
                let error = message.strip_prefix(b"failed ")?;
                Some(ToOld::Failed(String::from_utf8_lossy(error).into_owned()))
            }
        }
    }
}

/// Parses a decimal number in a message; `None` if it is malformed or too large.
fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Returns an address as a message contains it, such as `*:80` or `unix:/run/a.sock`.
fn address_bytes(address: &Address) -> Vec<u8> {
    match address {
        Address::Tcp { ip: None, port } => format!("*:{port}").into_bytes(),
        Address::Tcp { ip: Some(ip), port } => SocketAddr::new(*ip, *port).to_string().into_bytes(),
        Address::Unix(path) => [b"unix:", path.as_os_str().as_bytes()].concat(),
    }
}

/// Parses an address in a message; `None` if it is malformed.
fn address(bytes: &[u8]) -> Option<Address> {
    if let Some(path) = bytes.strip_prefix(b"unix:") {
        return Some(Address::Unix(OsStr::from_bytes(path).into()));
    }
    let text = std::str::from_utf8(bytes).ok()?;
    if let Some(port) = text.strip_prefix("*:") {
        let port = port.parse().ok()?;
        return Some(Address::Tcp { ip: None, port });
    }
    let address: SocketAddr = text.parse().ok()?;
    Some(address.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_decoded() {
        let addresses = ["127.0.0.1:0", "[::1]:443"].map(|text| text.parse::<SocketAddr>().expect("an address").into());
        let path = OsStr::from_bytes(b"/run/a b\xff.sock").into();
        let others = [Address::Tcp { ip: None, port: 80 }, Address::Unix(path)];
        let mut messages = vec![
            ToNew::Begin {
                version: 1,
                generation: 65_535,
                has_dropped_root: true,
            },
            ToNew::StateFolder("/a b".into()),
            ToNew::Relay { generation: 7 },
            ToNew::Optional(None),
            ToNew::Helper {
                version: 1,
                accounts: 2,
                default: None,
            },
            ToNew::Helper {
                version: 1,
                accounts: 2,
                default: Some(1),
            },
            ToNew::Account {
                uid: 33,
                gid: 34,
                name: "www data".to_owned(),
            },
            ToNew::End,
            ToNew::Go,
        ];
        for address in addresses.into_iter().chain(others) {
            for (group, kind) in [
                (SocketGroup::Sites, SocketKind::Stream),
                (SocketGroup::Sites, SocketKind::Activated),
                (SocketGroup::Control, SocketKind::Udp),
            ] {
                messages.push(ToNew::Socket {
                    group,
                    kind,
                    address: address.clone(),
                });
            }
        }
        for message in messages {
            assert_eq!(ToNew::decode(&message.encode()), Some(message));
        }
        let unused = ToOld::UnusedUdp(Address::Tcp { ip: None, port: 443 });
        for message in [
            unused,
            ToOld::Unknown,
            ToOld::Prepared,
            ToOld::Ready,
            ToOld::Failed("a\nb".to_owned()),
        ] {
            assert_eq!(ToOld::decode(&message.encode()), Some(message));
        }
        let long = ToOld::Failed("x".repeat(2 * MAX_MESSAGE)).encode();
        assert_eq!(long.len(), MAX_MESSAGE);
    }

    #[test]
    fn unknown_messages_are_rejected() {
        for message in [
            "",
            "begin",
            "begin x 0 0",
            "begin 1 65536 0",
            "socket sites stream",
            "socket sites stream a:b",
            "socket sites file *:80",
            "socket other udp *:80",
            "relay",
            "helper 1 2",
            "helper 1 2 256",
            "account 33 34",
            "stop",
        ] {
            assert_eq!(ToNew::decode(message.as_bytes()), None, "{message:?}");
        }
        for message in ["", "fail", "Ready"] {
            assert_eq!(ToOld::decode(message.as_bytes()), None, "{message:?}");
        }
    }
}
