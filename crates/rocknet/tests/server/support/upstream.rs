//! Scripted HTTP/1.1 upstream: it parses requests strictly and sends exactly the bytes of a test.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// A running upstream.
pub struct Upstream {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
}

/// A request as received.
#[derive(Debug, Default, Clone)]
pub struct ReceivedRequest {
    /// Request line, such as `GET /path HTTP/1.1`.
    pub line: String,
    pub fields: Vec<(String, String)>,
    pub content: Vec<u8>,
}

/// Action of the upstream on the connection after a response.
pub enum Next {
    Keep,
    Close,
}

impl ReceivedRequest {
    /// Returns the value of a field. Panics if the request has the field more than once.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} more than once in {self:?}");
        value
    }
}

impl Upstream {
    /// Starts an upstream that reads whole requests and calls `response` to write each response.
    pub fn start(
        response: impl Fn(&ReceivedRequest, &mut TcpStream) -> Next + Send + Sync + Clone + 'static,
    ) -> Upstream {
        let seen: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let all = Arc::clone(&seen);
        let serve = move |stream: TcpStream| {
            let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
            let mut stream = stream;
            while let Ok(Some(incoming)) = request(&mut reader) {
                lock(&all).push(incoming.clone());
                if let Next::Close = response(&incoming, &mut stream) {
                    return;
                }
            }
        };
        Upstream {
            seen,
            ..Upstream::raw(serve)
        }
    }

    /// Starts an upstream that responds to each request with these bytes and keeps the connection.
    pub fn responding_with(response: impl Into<Vec<u8>>) -> Upstream {
        let response = response.into();
        Upstream::start(move |_, stream| {
            write_to(stream, &response);
            Next::Keep
        })
    }

    /// Starts an upstream that runs `serve` for each connection in a new thread.
    pub fn raw(serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port to listen at");
        let address = listener.local_addr().expect("its address");
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        // The threads are not joined. They run until the process of the test exits.
        spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.set_nodelay(true);
                let serve = serve.clone();
                spawn(move || serve(stream));
            }
        });
        Upstream {
            address,
            connections,
            seen: Arc::default(),
        }
    }

    /// URL of the upstream, as in a configuration.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the key with which a site proxies all requests to this upstream.
    pub fn key(&self) -> String {
        format!("proxy = \"{}\"", self.url())
    }

    /// Number of connections that have been accepted so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Returns all requests so far, in the order of their arrival.
    pub fn all(&self) -> Vec<ReceivedRequest> {
        lock(&self.seen).clone()
    }

    /// Returns the latest request.
    pub fn last(&self) -> ReceivedRequest {
        lock(&self.seen).last().expect("a request").clone()
    }
}

/// Starts a thread with a name that distinguishes it from the threads of a server in the same process.
fn spawn(run: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().name("t-upstream".to_owned()).spawn(run);
    drop(thread.expect("a thread"));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no test has failed while it was locked")
}

/// Reads the next request with its body; `None` at the end of the connection.
pub fn request(reader: &mut impl BufRead) -> io::Result<Option<ReceivedRequest>> {
    let Some(first) = line(reader)? else { return Ok(None) };
    let mut incoming = ReceivedRequest {
        line: first,
        ..ReceivedRequest::default()
    };
    while let Some(line) = line(reader)?.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("{line:?} is no field"));
        incoming.fields.push((name.to_owned(), value.to_owned()));
    }
    if incoming.field("Transfer-Encoding") == Some("chunked") {
        assert_eq!(
            incoming.field("Content-Length"),
            None,
            "a request has a length and chunked coding"
        );
        while let Some(size) = line(reader)? {
            let size = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("{size:?} is no size"));
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk)?;
            assert!(chunk.ends_with(b"\r\n"));
            if size == 0 {
                break;
            }
            incoming.content.extend_from_slice(&chunk[..size]);
        }
    } else if let Some(length) = incoming.field("Content-Length") {
        let length = length.parse().expect("a length");
        incoming.content = vec![0; length];
        reader.read_exact(&mut incoming.content)?;
    }
    Ok(Some(incoming))
}

/// Reads a line, which must end with CRLF, and removes its end; `None` at the end of the connection.
fn line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let line = line
        .strip_suffix("\r\n")
        .unwrap_or_else(|| panic!("{line:?} ends without CRLF"));
    Ok(Some(line.to_owned()))
}

/// Sends bytes and ignores the error if the proxy has closed the connection.
pub fn write_to(stream: &mut TcpStream, bytes: impl AsRef<[u8]>) {
    let _ = stream.write_all(bytes.as_ref());
}

/// Returns a complete response with status 200 and a length.
pub fn ok(content: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{content}", content.len())
}
