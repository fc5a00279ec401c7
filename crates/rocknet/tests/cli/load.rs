//! Load on a server: clients that notice every request that fails.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// Time limit of every step.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Receives a response whose body is `home`, and returns its head.
fn receive(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&received);
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && body == "home"
        {
            return Ok(head.to_owned());
        }
        match stream.read(&mut buffer)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            size => received.extend_from_slice(&buffer[..size]),
        }
    }
}

/// Connects to a server.
pub fn connect(authority: &str) -> TcpStream {
    let stream = TcpStream::connect(authority).expect("a connection");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream.set_nodelay(true).expect("an option");
    stream
}

/// Clients that send requests until the load ends. A client panics if one of its requests fails.
#[derive(Default)]
pub struct Load {
    ends: AtomicBool,
    /// Responses received on kept connections.
    kept: AtomicU64,
    /// Responses received by the clients that open a connection for each request.
    new: AtomicU64,
}

impl Load {
    /// Starts two clients that keep their connections, and two that open one for each request. The clients end when
    /// the returned guard is dropped, even if the test panics.
    #[must_use]
    pub fn start<'s>(&'s self, scope: &'s Scope<'s, '_>, authority: &'s str) -> EndsLoad<'s> {
        for _ in 0..2 {
            scope.spawn(|| self.request(authority, true, &self.kept));
            scope.spawn(|| self.request(authority, false, &self.new));
        }
        EndsLoad(self)
    }

    fn request(&self, authority: &str, keeps_alive: bool, count: &AtomicU64) {
        let field = if keeps_alive { "" } else { "Connection: close\r\n" };
        let mut stream = connect(authority);
        while !self.ends.load(Ordering::Relaxed) {
            write!(stream, "GET / HTTP/1.1\r\nHost: localhost\r\n{field}\r\n").expect("a request");
            let head = receive(&mut stream).expect("a response");
            assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
            if head.to_ascii_lowercase().contains("\r\nconnection: close") {
                stream = connect(authority);
            }
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until both kinds of clients have received more responses.
    pub fn wait_for_requests(&self) {
        let deadline = Instant::now() + TIMEOUT;
        for count in [&self.kept, &self.new] {
            let target = count.load(Ordering::Relaxed) + 10;
            while count.load(Ordering::Relaxed) < target {
                assert!(Instant::now() < deadline, "no requests were served");
                thread::yield_now();
            }
        }
    }
}

/// Guard that ends the load when it is dropped.
pub struct EndsLoad<'l>(&'l Load);

impl Drop for EndsLoad<'_> {
    fn drop(&mut self) {
        self.0.ends.store(true, Ordering::Relaxed);
    }
}
