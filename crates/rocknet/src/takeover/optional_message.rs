//! Messages of the old process that a program may ignore: without them, clients make a full TLS handshake once, and
//! limits count their requests from 0.
//!
//! Each begins with a prefix, a name and a version. A program ignores names and versions that it does not know, so that
//! an upgrade to an older or newer program works. Secrets are in zeroized memory, and pass through the channel only.

use zeroize::Zeroizing;

use crate::certificates::resumption::{SiteSessions, StoredSession};

/// Maximum size of any message in bytes: a path of the maximum length, an error text, or about 40 sessions.
pub(super) const MAX_MESSAGE: usize = 8192;

/// Name and version of [`OptionalMessage::TicketSecrets`].
const TICKET_SECRETS: &[u8] = b"ticket-secrets 1 ";
/// Name and version of [`OptionalMessage::Sessions`].
const SESSIONS: &[u8] = b"sessions 1 ";

/// Name and version of [`OptionalMessage::LimitSecrets`]. A change of the computation of the hashes of keys needs a new
/// version, because entries are found by these hashes.
const LIMIT_SECRETS: &[u8] = b"limit-secrets 1 ";
/// Name and version of [`OptionalMessage::Limits`].
const LIMITS: &[u8] = b"limits 1";

/// Message that a program may ignore.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OptionalMessage {
    /// Encoded secrets of session tickets.
    TicketSecrets(SecretBytes),
    /// Sessions that a site has stored for early data. Once they are sent, they are in the new process only.
    Sessions(SiteSessions),
    /// Encoded secrets of the tables of clients (limits, offences, wrong passwords).
    LimitSecrets(SecretBytes),
    /// The tables of clients, in a file whose descriptor comes with the message.
    Limits,
}

/// Bytes that `Debug` does not show, and that are zeroized when they are dropped.
#[derive(PartialEq, Eq)]
pub(super) struct SecretBytes(pub Zeroizing<Vec<u8>>);

impl std::fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} secret bytes", self.0.len())
    }
}

impl OptionalMessage {
    /// Beginning of every optional message.
    pub const PREFIX: &[u8] = b"optional ";

    /// Returns the bytes of the message, beginning with [`OptionalMessage::PREFIX`].
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        // With its full capacity from the start, the vector leaves no copy of a secret behind.
        let mut message = Zeroizing::new(Vec::with_capacity(MAX_MESSAGE));
        message.extend_from_slice(Self::PREFIX);
        match self {
            OptionalMessage::TicketSecrets(secrets) => {
                message.extend_from_slice(TICKET_SECRETS);
                message.extend_from_slice(&secrets.0);
            }
            OptionalMessage::LimitSecrets(secrets) => {
                message.extend_from_slice(LIMIT_SECRETS);
                message.extend_from_slice(&secrets.0);
            }
            OptionalMessage::Limits => message.extend_from_slice(LIMITS),
            OptionalMessage::Sessions(batch) => {
                message.extend_from_slice(SESSIONS);
                write_bytes(&mut message, batch.site.as_bytes());
                // Settings that the clients of these sessions remember for early data.
                write_bytes(&mut message, &batch.remembered);
                for session in &batch.sessions {
                    write_bytes(&mut message, &session.id);
                    write_bytes(&mut message, &session.state);
                }
            }
        }
        message
    }

    /// Decodes a message without its prefix. Returns `None` for a message that this version does not know.
    pub fn decode(message: &[u8]) -> Option<OptionalMessage> {
        if let Some(secrets) = message.strip_prefix(TICKET_SECRETS) {
            let secrets = SecretBytes(secrets.to_vec().into());
            return Some(OptionalMessage::TicketSecrets(secrets));
        }
        if let Some(secrets) = message.strip_prefix(LIMIT_SECRETS) {
            let secrets = SecretBytes(secrets.to_vec().into());
            return Some(OptionalMessage::LimitSecrets(secrets));
        }
        if message == LIMITS {
            return Some(OptionalMessage::Limits);
        }
        let rest = &mut message.strip_prefix(SESSIONS)?;
        let mut batch = SiteSessions {
            site: String::from_utf8(read_bytes(rest)?.to_vec()).ok()?,
            remembered: read_bytes(rest)?.to_vec(),
            sessions: Vec::new(),
        };
        while !rest.is_empty() {
            batch.sessions.push(StoredSession {
                id: read_bytes(rest)?.to_vec(),
                state: read_bytes(rest)?.to_vec().into(),
            });
        }
        Some(OptionalMessage::Sessions(batch))
    }
}

/// Divides the sessions of a site into messages. A session that fits no message is left out.
pub(super) fn session_batches(all: SiteSessions) -> Vec<OptionalMessage> {
    let SiteSessions {
        site,
        remembered,
        sessions,
    } = all;
    let head = OptionalMessage::PREFIX.len() + SESSIONS.len() + 2 * LENGTH_SIZE + site.len() + remembered.len();
    // `size`: bytes of the last message. It starts at the size of a full message, so the first session begins a new
    // message.
    let (mut batches, mut size) = (Vec::<SiteSessions>::new(), MAX_MESSAGE);
    for session in sessions {
        let added = 2 * LENGTH_SIZE + session.id.len() + session.state.len();
        if head + added > MAX_MESSAGE {
            continue;
        }
        size += added;
        match batches.last_mut().filter(|_| size <= MAX_MESSAGE) {
            Some(batch) => batch.sessions.push(session),
            None => {
                size = head + added;
                batches.push(SiteSessions {
                    site: site.clone(),
                    remembered: remembered.clone(),
                    sessions: vec![session],
                });
            }
        }
    }
    batches.into_iter().map(OptionalMessage::Sessions).collect()
}

/// Size of a length in bytes.
const LENGTH_SIZE: usize = 2;

/// Appends the length of `bytes` and then `bytes`.
fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // The length fits into 16 bits, because no message has more than `MAX_MESSAGE` bytes.
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Removes bytes that [`write_bytes`] has written from the beginning of `from`, and returns them. Returns `None` if
/// they are incomplete.
fn read_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = from.split_first_chunk::<LENGTH_SIZE>()?;
    let (bytes, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    *from = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::message::ToNew;
    use super::*;

    /// Returns `count` sessions of one site, each with a state of `size` bytes.
    fn sessions(count: usize, size: usize) -> SiteSessions {
        let session = |number: usize| StoredSession {
            id: number.to_le_bytes().to_vec(),
            state: vec![7; size].into(),
        };
        SiteSessions {
            site: "a.test".to_owned(),
            remembered: vec![1, 2],
            sessions: (0..count).map(session).collect(),
        }
    }

    #[test]
    fn messages_are_decoded() {
        let secrets = OptionalMessage::TicketSecrets(SecretBytes(vec![9; 72].into()));
        assert_eq!(format!("{secrets:?}"), "TicketSecrets(72 secret bytes)");
        let shown = format!("{:?}", sessions(1, 3));
        assert!(!shown.contains('7'), "{shown}");
        for message in [
            secrets,
            OptionalMessage::LimitSecrets(SecretBytes(vec![9; 48].into())),
            OptionalMessage::Limits,
            OptionalMessage::Sessions(sessions(0, 0)),
            OptionalMessage::Sessions(sessions(3, 200)),
        ] {
            let message = ToNew::Optional(Some(message));
            assert_eq!(ToNew::decode(&message.encode()), Some(message));
        }
    }

    #[test]
    fn unknown_messages_are_ignored() {
        let whole = OptionalMessage::Sessions(sessions(1, 9)).encode();
        let torn = &whole[..whole.len() - 1];
        for message in [
            &b"optional "[..],
            &b"optional ticket-secrets 2 x"[..],
            &b"optional news"[..],
            &b"optional limits 2"[..],
            &b"optional limit-secrets 2 x"[..],
            torn,
        ] {
            assert_eq!(ToNew::decode(message), Some(ToNew::Optional(None)), "{message:?}");
        }
    }

    #[test]
    fn sessions_are_divided_into_messages() {
        // Number of sessions, bytes of the state of each, and expected number of messages. A message has a head of 32
        // bytes and room for 38 sessions of 212 bytes, each with a state of 200 bytes.
        for (count, size, expected) in [
            (0, 9, 0),
            (1, 9, 1),
            (4096, 200, 108),
            (3, 8000, 3),
            (3, MAX_MESSAGE, 0),
        ] {
            let batches = session_batches(sessions(count, size));
            assert_eq!(batches.len(), expected, "{count} of {size}");
            let mut found = Vec::new();
            for batch in batches {
                let encoded = ToNew::Optional(Some(batch)).encode();
                assert!(encoded.len() <= MAX_MESSAGE, "{}", encoded.len());
                let Some(ToNew::Optional(Some(OptionalMessage::Sessions(batch)))) = ToNew::decode(&encoded) else {
                    panic!("not decoded");
                };
                found.extend(batch.sessions);
            }
            let all = if expected == 0 {
                Vec::new()
            } else {
                sessions(count, size).sessions
            };
            assert_eq!(found, all);
        }
    }
}
