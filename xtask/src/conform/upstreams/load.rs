//! Runs clients that request `/hello` without a pause, each on a keep-alive connection, and records failed requests
//! with their times.

use crate::Failure;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Number of clients.
const CLIENTS: usize = 8;
/// Timeout for one response.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);
/// Pause after a failed request, so that a server that is down is not polled in a busy loop.
const PAUSE: Duration = Duration::from_millis(2);

/// A request that did not receive a response with status 200 and the body of `/hello`.
#[derive(Clone, Debug)]
pub struct FailedRequest {
    pub sent: Instant,
    pub ended: Instant,
    /// Status of the response, or the error.
    pub what: String,
}

/// A load that runs until [`ClientLoad::finish`] is called.
pub struct ClientLoad {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<Vec<FailedRequest>>>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    good: AtomicUsize,
    bad: AtomicUsize,
}

impl ClientLoad {
    pub fn start(port: u16) -> Self {
        let shared = Arc::new(Shared::default());
        let clients = (0..CLIENTS).map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || client(port, &shared))
        });
        Self {
            clients: clients.collect(),
            shared,
        }
    }

    /// Waits for this many more good responses.
    pub fn wait_for_successes(&self, more: usize) -> Result<(), Failure> {
        wait(&self.shared.good, more, "good responses")
    }

    /// Waits for this many more failed requests.
    pub fn wait_for_failures(&self, more: usize) -> Result<(), Failure> {
        wait(&self.shared.bad, more, "failed requests")
    }

    /// Stops the clients and returns the number of good responses and all failed requests.
    pub fn finish(mut self) -> Result<(usize, Vec<FailedRequest>), Failure> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for client in self.clients.drain(..) {
            all.extend(client.join().map_err(|_| "a client of the load panicked")?);
        }
        Ok((self.shared.good.load(Ordering::Relaxed), all))
    }
}

impl Drop for ClientLoad {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

/// Waits until `count` has grown by `more`. `what`: the counted things, for the error.
fn wait(count: &AtomicUsize, more: usize, what: &str) -> Result<(), Failure> {
    let goal = count.load(Ordering::Relaxed) + more;
    let started = Instant::now();
    while count.load(Ordering::Relaxed) < goal {
        if started.elapsed() > TIMEOUT {
            let now = count.load(Ordering::Relaxed);
            return Err(format!("timeout while waiting for {what}: {now} of {goal}").into());
        }
        thread::sleep(POLL);
    }
    Ok(())
}

fn client(port: u16, shared: &Shared) -> Vec<FailedRequest> {
    let mut failed = Vec::new();
    let mut connection = None;
    while !shared.is_over.load(Ordering::Relaxed) {
        let sent = Instant::now();
        let what = match get(&mut connection, port) {
            Ok((200, content)) if content == b"hello" => {
                shared.good.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            Ok((status, _)) => status.to_string(),
            Err(error) => {
                connection = None;
                error.to_string()
            }
        };
        let ended = Instant::now();
        failed.push(FailedRequest { sent, ended, what });
        shared.bad.fetch_add(1, Ordering::Relaxed);
        thread::sleep(PAUSE);
    }
    failed
}

/// Sends a request on `connection`, which is opened if it is `None`, and reads the whole response.
fn get(connection: &mut Option<BufReader<TcpStream>>, port: u16) -> io::Result<(u16, Vec<u8>)> {
    let stream = match connection {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), TIMEOUT)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.set_nodelay(true)?;
            connection.insert(BufReader::new(stream))
        }
    };
    stream
        .get_mut()
        .write_all(b"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let (mut status, mut length) = (None, None);
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = line.trim_end().to_ascii_lowercase();
        if text.is_empty() {
            break;
        }
        if status.is_none() {
            status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        } else if let Some(value) = text.strip_prefix("content-length:") {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let (Some(status), Some(length)) = (status, length) else {
        return Err(io::Error::other("a response without status or length"));
    };
    let mut content = vec![0; length];
    stream.read_exact(&mut content)?;
    Ok((status, content))
}
