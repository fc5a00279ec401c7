//! Clients that send or read too slowly: their connections are closed, and they neither delay other clients nor fill
//! memory.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::SMALL;
use crate::child::{Client, DEADLINE, Setup};

#[test]
fn hundreds_of_slow_clients_are_closed_and_delay_no_other_client() {
    /// Number of clients of each kind.
    const EACH: usize = 150;
    let setup = Setup::new()
        .tables("[limits]\nheader_timeout = \"1s\"\nbody_idle = \"1s\"\nsend_stall = \"1s\"\nkeep_alive = \"1s\"\nconnections = 2000");
    setup.sparse("large.bin", 64 << 20);
    let mut server = setup.start();
    // Name, bytes that the client sends, and the expected status: `Some("")` for no response, `None` for no check.
    let kinds = [
        ("half a head", "GET /small.txt HTTP/1.1\r\nHo", Some("408")),
        (
            "half of a body",
            "POST /small.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nabc",
            None,
        ),
        ("no reading", "GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n", None),
        (
            "no second request",
            "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n",
            Some("200"),
        ),
        ("nothing", "", Some("")),
    ];
    let mut slow = Vec::new();
    for _ in 0..EACH {
        for (name, text, status) in kinds {
            let mut client = server.connect();
            client.send(text).expect("sent");
            slow.push((name, status, client));
        }
    }
    let all = slow.len() as u64;
    server.wait_for("all connections are accepted", |status| status.total >= all);
    let mut innocent = server.connect();
    let stalls = StallMonitor::watch();
    let began = Instant::now();
    let mut worst = Duration::ZERO;
    loop {
        let sent_at = Instant::now();
        if let Ok(response) = innocent.try_get("/small.txt") {
            assert_eq!(response.body, SMALL);
            worst = worst.max(sent_at.elapsed());
        } else {
            panic!("the connection of the other client was closed");
        }
        if server.status().open <= 1 {
            break;
        }
        assert!(
            began.elapsed() < DEADLINE,
            "still open: {:?}; {}",
            server.status(),
            server.errors()
        );
    }
    let stalled = stalls.longest();
    assert!(
        worst < Duration::from_secs(1) + stalled,
        "the other client waited {worst:?}, although the machine stalled threads for at most {stalled:?}"
    );
    for (name, status, mut client) in slow {
        if let Some(status) = status {
            let received = client.rest().expect("an end");
            let received = String::from_utf8_lossy(&received);
            assert_eq!(received.get(9..12).unwrap_or_default(), status, "{name}: {received}");
        }
    }
}

/// Two threads that exchange a byte. The longest exchange shows for how long a busy machine delays threads.
struct StallMonitor {
    is_over: Arc<AtomicBool>,
    watching: thread::JoinHandle<Duration>,
}

impl StallMonitor {
    fn watch() -> StallMonitor {
        let (mut here, mut there) = UnixStream::pair().expect("sockets");
        thread::spawn(move || {
            let mut byte = [0];
            while there
                .read_exact(&mut byte)
                .and_then(|()| there.write_all(&byte))
                .is_ok()
            {}
        });
        let is_over = Arc::<AtomicBool>::default();
        let over = Arc::clone(&is_over);
        let watching = thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let began = Instant::now();
                here.write_all(b"x").expect("a thread that reads");
                here.read_exact(&mut [0]).expect("a thread that writes");
                longest = longest.max(began.elapsed());
                thread::sleep(Duration::from_millis(1));
            }
            longest
        });
        StallMonitor { is_over, watching }
    }

    /// Stops the exchange and returns the longest time that it took.
    fn longest(self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        self.watching.join().expect("a thread that watches")
    }
}

#[test]
fn a_client_that_pipelines_and_never_reads_does_not_fill_memory() {
    const CLIENTS: usize = 8;
    // Number of bytes that exceeds the socket buffers of both sides.
    const MOST: usize = 32 << 20;
    let setup = Setup::new();
    setup.file("page.bin", vec![b'x'; 3_000]);
    let server = setup.start();
    let address = server.address();
    server.get("/page.bin");
    let before = server.memory();
    let requests = "GET /page.bin HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1000);
    let clients: Vec<TcpStream> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let mut stream = TcpStream::connect(address).expect("a connection");
                    // A write that takes this long means that the server has stopped reading, as it must.
                    stream
                        .set_write_timeout(Some(Duration::from_millis(500)))
                        .expect("an option");
                    let mut sent = 0;
                    while stream.write_all(requests.as_bytes()).is_ok() {
                        sent += requests.len();
                        assert!(
                            sent < MOST,
                            "the server continues to read, though its responses are not read"
                        );
                    }
                    stream
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("a client that was stopped"))
            .collect()
    });
    assert_eq!(server.get("/small.txt").body, SMALL);
    let after = server.memory();
    assert!(after <= before + 16 * 1024, "memory grew from {before} to {after} KiB");
    drop(clients);
}

#[test]
fn the_test_client_distinguishes_cuts_from_ends() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let mut client = Client::to(listener.local_addr().expect("an address"));
    let (mut stream, _) = listener.accept().expect("a connection");
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        .expect("sent");
    drop(stream);
    assert_eq!(
        client.response().map_err(|error| error.kind()),
        Err(ErrorKind::UnexpectedEof)
    );
    assert_eq!(client.received(), "half");
}
