//! Requests of `hq-interop`, which is HTTP/0.9 over QUIC for interoperability tests. They are translated to HTTP/3.

use bytes::Bytes;
use rocknet_proto::h3::{HqReceived, HqRequest, StreamId};

/// State of a connection whose client speaks `hq-interop`.
pub struct HqConnection {
    /// Server name of the handshake, which is used as the authority of each request.
    authority: Vec<u8>,
    /// Streams whose request line has not arrived completely.
    lines: Vec<(StreamId, HqRequest)>,
}

/// Bytes of a request stream, translated.
pub(super) enum Translated {
    /// Bytes for the engine. The flag is true if the request ends with them.
    Bytes(Bytes, bool),
    /// More bytes are needed.
    More,
    /// The bytes follow the request line and are ignored.
    Ignored,
    /// The request line is malformed; the stream has to be reset.
    Malformed,
}

impl HqConnection {
    pub(super) fn new(server_name: Option<String>) -> HqConnection {
        HqConnection {
            authority: server_name.unwrap_or_default().into_bytes(),
            lines: Vec::new(),
        }
    }

    /// Translates received bytes. `awaits_request`: true until the engine has reported the request of the stream.
    pub(super) fn translate(&mut self, id: StreamId, bytes: &[u8], fin: bool, awaits_request: bool) -> Translated {
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

    /// Drops the line of a stream.
    pub(super) fn forget(&mut self, id: StreamId) {
        self.lines.retain(|(line, _)| *line != id);
    }
}
