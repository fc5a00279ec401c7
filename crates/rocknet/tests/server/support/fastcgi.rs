//! Scripted FastCGI application: it parses requests and sends the responses of a test.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Name of the socket file in the folder of a test.
pub const SOCKET: &str = "php.sock";

/// A running application.
pub struct Peer {
    connections: Arc<AtomicUsize>,
}

/// A request as received.
#[derive(Debug, Default)]
pub struct ReceivedRequest {
    pub variables: BTreeMap<String, String>,
    pub content: Vec<u8>,
}

/// Action of the application on the connection after a response.
pub enum Next {
    Keep,
    Close,
}

impl ReceivedRequest {
    pub fn variable(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }
}

impl Peer {
    /// Starts an application that reads whole requests and calls `response` to send each response.
    pub fn start(
        socket: &Path,
        response: impl Fn(&ReceivedRequest, &mut UnixStream) -> Next + Send + Sync + Clone + 'static,
    ) -> Peer {
        Peer::raw(socket, move |mut stream| {
            while let Ok(Some(incoming)) = request(&mut stream) {
                if let Next::Close = response(&incoming, &mut stream) {
                    return;
                }
            }
        })
    }

    /// Starts an application that runs `serve` for each connection in a new thread.
    pub fn raw(socket: &Path, serve: impl Fn(UnixStream) + Send + Sync + Clone + 'static) -> Peer {
        let _ = std::fs::remove_file(socket);
        let listener = UnixListener::bind(socket).expect("a socket to listen at");
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        // The threads are not joined. They run until the process of the test exits.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let serve = serve.clone();
                thread::spawn(move || serve(stream));
            }
        });
        Peer { connections }
    }

    /// Number of connections that have been accepted so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Reads the next record and returns its type and contents; `None` at the end of the connection.
pub fn record(stream: &mut UnixStream) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut header = [0; 8];
    if stream.read(&mut header[..1])? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut header[1..])?;
    let mut content = vec![0; usize::from(u16::from_be_bytes([header[4], header[5]]))];
    stream.read_exact(&mut content)?;
    stream.read_exact(&mut vec![0; usize::from(header[6])])?;
    Ok(Some((header[1], content)))
}

/// Reads the next request with its body; `None` at the end of the connection.
pub fn request(stream: &mut UnixStream) -> io::Result<Option<ReceivedRequest>> {
    let mut incoming = ReceivedRequest::default();
    while let Some((kind, content)) = record(stream)? {
        // Types 4 and 5 are `FCGI_PARAMS` and `FCGI_STDIN`. An empty record of type 5 ends the request.
        match kind {
            4 => incoming.variables.extend(pairs(&content)),
            5 if content.is_empty() => return Ok(Some(incoming)),
            5 => incoming.content.extend(content),
            _ => {}
        }
    }
    Ok(None)
}

/// Decodes the names and values of an `FCGI_PARAMS` record.
fn pairs(mut bytes: &[u8]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let mut sizes = [0; 2];
        for size in &mut sizes {
            if bytes[0] < 0x80 {
                *size = usize::from(bytes[0]);
                bytes = &bytes[1..];
            } else {
                *size = u32::from_be_bytes([bytes[0] & 0x7f, bytes[1], bytes[2], bytes[3]]) as usize;
                bytes = &bytes[4..];
            }
        }
        let (name, rest) = bytes.split_at(sizes[0]);
        let (value, rest) = rest.split_at(sizes[1]);
        all.push((
            String::from_utf8_lossy(name).into_owned(),
            String::from_utf8_lossy(value).into_owned(),
        ));
        bytes = rest;
    }
    all
}

/// Appends a record of the request with ID 1, which is the only one of a connection.
fn push(bytes: &mut Vec<u8>, kind: u8, content: &[u8]) {
    let [high, low] = u16::try_from(content.len()).expect("a record's content").to_be_bytes();
    bytes.extend([1, kind, 0, 1, high, low, 0, 0]);
    bytes.extend(content);
}

/// Returns the records of one stream of a response, such as standard output.
fn stream_of(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    content.chunks(60_000).for_each(|piece| push(&mut bytes, kind, piece));
    bytes
}

/// Returns `FCGI_STDOUT` records (type 6).
pub fn stdout(content: &[u8]) -> Vec<u8> {
    stream_of(6, content)
}

/// Returns `FCGI_STDERR` records (type 7).
pub fn stderr(content: &[u8]) -> Vec<u8> {
    stream_of(7, content)
}

/// Returns the `FCGI_END_REQUEST` record (type 3), which ends a response. `protocol` is the protocol status, 0 for
/// success.
pub fn end(protocol: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    push(&mut bytes, 3, &[0, 0, 0, 0, protocol, 0, 0, 0]);
    bytes
}

/// Returns the records of a complete response.
pub fn response(text: &[u8]) -> Vec<u8> {
    [stdout(text), end(0)].concat()
}

/// Sends bytes and ignores the error if the server has closed the connection.
pub fn write_to(stream: &mut UnixStream, bytes: impl AsRef<[u8]>) {
    let _ = stream.write_all(bytes.as_ref());
}
