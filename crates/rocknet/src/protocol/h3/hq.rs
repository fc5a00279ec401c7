//! Requests of `hq-interop`, which is HTTP/0.9 over QUIC for interoperability tests. They are translated to HTTP/3.

use std::net::IpAddr;

use bytes::Bytes;
use rocknet_proto::h3::{HqReceived, HqRequest, StreamId};

/// State of a connection whose client speaks `hq-interop`.
pub struct HqConnection {
    /// Authority of each request, because a request line names no host.
    authority: Vec<u8>,
    /// Streams whose request line has not arrived completely.
    lines: Vec<(StreamId, HqRequest)>,
}

/// Bytes of a request stream, translated.
pub(super) enum Translated {
    /// Bytes for the engine. The flag is true if the request ends with them. Over `hq-interop` it always does. The
    /// caller also uses this variant for bytes of HTTP/3, which need no translation and may be followed by more.
    Bytes(Bytes, bool),
    /// More bytes are needed.
    More,
    /// The bytes follow the request line and are ignored.
    Ignored,
    /// The request line is malformed; the stream has to be reset.
    Malformed,
}

impl HqConnection {
    /// Creates the state of a connection. `server_name`: the name that the client sent in the handshake (SNI). `local`:
    /// local IP address of the connection, used as the authority if the client sent no name.
    pub(super) fn new(server_name: Option<String>, local: Option<IpAddr>) -> HqConnection {
        let authority = server_name.unwrap_or_else(|| match local {
            Some(IpAddr::V6(address)) => format!("[{address}]"),
            Some(IpAddr::V4(address)) => address.to_string(),
            None => "localhost".to_owned(),
        });
        HqConnection {
            authority: authority.into_bytes(),
            lines: Vec::new(),
        }
    }

    /// Translates received bytes. `fin`: true if the stream ends after them. `awaits_request`: true until the engine
    /// has reported the request of the stream.
    pub(super) fn translate(&mut self, id: StreamId, bytes: &[u8], fin: bool, awaits_request: bool) -> Translated {
        // Bytes after the request line are ignored. The caller counts them, because it stops a client that sends too
        // many. At the end of the stream, an empty piece makes the caller drop this count. The engine ignores the
        // piece, because the request has already ended.
        if !awaits_request {
            return match fin {
                true => Translated::Bytes(Bytes::new(), true),
                false => Translated::Ignored,
            };
        }
        let position = self.lines.iter().position(|(known, _)| *known == id);
        let position = position.unwrap_or_else(|| {
            self.lines.push((id, HqRequest::default()));
            self.lines.len() - 1
        });
        match self.lines[position].1.receive(bytes, fin, &self.authority) {
            HqReceived::More => Translated::More,
            HqReceived::Frame(frame) => {
                self.forget(id);
                Translated::Bytes(frame.into(), true)
            }
            HqReceived::Malformed => Translated::Malformed,
        }
    }

    /// Drops the incomplete request line of a stream.
    pub(super) fn forget(&mut self, id: StreamId) {
        self.lines.retain(|(known, _)| *known != id);
    }
}
