//! Scripted SCGI and uwsgi applications: they parse requests and send the responses of a test.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::fastcgi::{Peer, ReceivedRequest};

/// Protocol of an application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GatewayProtocol {
    Scgi,
    Uwsgi,
}

impl GatewayProtocol {
    /// Starts an application that reads one request per connection, calls `response` to send the response, and closes
    /// the connection.
    pub fn start(
        self,
        socket: &Path,
        response: impl Fn(&ReceivedRequest, &mut UnixStream) + Send + Sync + Clone + 'static,
    ) -> Peer {
        Peer::raw(socket, move |mut stream| {
            if let Ok(incoming) = self.request(&mut stream) {
                response(&incoming, &mut stream);
            }
        })
    }

    /// Reads the next request, with its body.
    pub fn request(self, stream: &mut UnixStream) -> io::Result<ReceivedRequest> {
        let mut incoming = match self {
            GatewayProtocol::Scgi => scgi(stream)?,
            GatewayProtocol::Uwsgi => uwsgi(stream)?,
        };
        let length = incoming.variable("CONTENT_LENGTH").parse().unwrap_or(0);
        incoming.content = vec![0; length];
        stream.read_exact(&mut incoming.content)?;
        Ok(incoming)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads the netstring with the variables of an SCGI request.
fn scgi(stream: &mut UnixStream) -> io::Result<ReceivedRequest> {
    let mut length = 0;
    let mut byte = [0];
    loop {
        stream.read_exact(&mut byte)?;
        match byte[0] {
            b':' => break,
            digit => length = length * 10 + usize::from(digit - b'0'),
        }
    }
    let mut variables = vec![0; length + 1];
    stream.read_exact(&mut variables)?;
    assert_eq!(variables.pop(), Some(b','));
    let parts: Vec<&[u8]> = variables.split(|byte| *byte == 0).collect();
    assert_eq!(parts[0], b"CONTENT_LENGTH", "CONTENT_LENGTH must be the first variable");
    let mut incoming = ReceivedRequest::default();
    for pair in parts.chunks_exact(2) {
        let twice = incoming.variables.insert(text(pair[0]), text(pair[1]));
        assert!(twice.is_none(), "{} is given twice", text(pair[0]));
    }
    assert_eq!(incoming.variable("SCGI"), "1");
    Ok(incoming)
}

/// Reads the header and the variables of a uwsgi request.
fn uwsgi(stream: &mut UnixStream) -> io::Result<ReceivedRequest> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    assert_eq!((header[0], header[3]), (0, 0), "the modifiers");
    let mut bytes = vec![0; usize::from(u16::from_le_bytes([header[1], header[2]]))];
    stream.read_exact(&mut bytes)?;
    let mut incoming = ReceivedRequest::default();
    let mut rest = &bytes[..];
    // Removes a string from the front. Its length precedes it in two bytes.
    let take = |rest: &mut &[u8]| {
        let (length, after) = rest.split_at(2);
        let (part, after) = after.split_at(usize::from(u16::from_le_bytes([length[0], length[1]])));
        *rest = after;
        text(part)
    };
    while !rest.is_empty() {
        let (name, value) = (take(&mut rest), take(&mut rest));
        incoming.variables.insert(name, value);
    }
    Ok(incoming)
}
