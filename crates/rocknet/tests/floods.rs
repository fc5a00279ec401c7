//! Clients that send a different string in each request, to fill tables of the server: its memory must stay bounded.

mod child;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::ops::Range;
use std::thread;

use child::{Client, Setup};

/// Maximum growth of memory in KiB during a flood, compared with the memory after the first responses.
const MAX_KIB: u64 = 32 * 1024;

/// Returns a path of `length` bytes that names no file and differs for each `number`.
fn missing(number: usize, length: usize) -> String {
    /// Length of a segment in bytes with its slash, less than the 255 bytes that a file name may have.
    const SEGMENT: usize = 200;
    let mut path = format!("/{number:07}");
    while path.len() < length {
        let room = length - path.len();
        path.push('/');
        path.extend(std::iter::repeat_n('x', room.min(SEGMENT) - 1));
    }
    path
}

/// Returns a path that decodes to `/small.txt` and is encoded differently for each `number` less than 3⁹.
fn encoded_path(number: usize) -> String {
    let mut path = String::from("/");
    for (place, byte) in b"small.txt".iter().enumerate() {
        // Each letter is written literally, or escaped with lower-case or upper-case digits.
        match number / 3usize.pow(place as u32) % 3 {
            0 => path.push(char::from(*byte)),
            1 => path.push_str(&format!("%{byte:02x}")),
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

/// A flood of requests on several connections, in which every request is different.
struct Flood {
    /// Description for messages.
    what: &'static str,
    /// Tables of the configuration before the site.
    tables: &'static str,
    /// Keys of the site.
    keys: &'static str,
    connections: usize,
    /// Requests on each connection.
    requests: usize,
    /// Returns the target and the host of the request with this number.
    request: fn(usize) -> (String, String),
    /// Expected status of every response.
    status: &'static str,
}

const LOCAL: &str = "localhost";

impl Flood {
    /// Default values for the fields that a flood does not set.
    const PLAIN: Flood = Flood {
        what: "",
        tables: "",
        keys: "",
        connections: 1,
        requests: 20_000,
        request: |_| (String::new(), String::new()),
        status: "404",
    };

    /// Pipelines requests on one connection and reads all responses.
    fn send(&self, client: &Client, numbers: Range<usize>) {
        let start = format!("HTTP/1.1 {} ", self.status);
        let count = numbers.len();
        let (mut input, mut output) = (client.stream(), client.stream());
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut batch = Vec::new();
                for number in numbers {
                    let (target, host) = (self.request)(number);
                    batch.extend_from_slice(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
                    if batch.len() >= 64 * 1024 {
                        output.write_all(&batch).expect("a server that reads");
                        batch.clear();
                    }
                }
                output.write_all(&batch).expect("a server that reads");
                output.shutdown(Shutdown::Write).expect("an open socket");
            });
            let (mut responses, mut kept) = (0, Vec::new());
            let mut buffer = vec![0; 256 * 1024];
            loop {
                let got = input.read(&mut buffer).expect("responses");
                if got == 0 {
                    break;
                }
                kept.extend_from_slice(&buffer[..got]);
                responses += memchr::memmem::find_iter(&kept, &start).count();
                // The beginning of a response may be split between two reads.
                kept.drain(..kept.len() - kept.len().min(start.len() - 1));
            }
            assert_eq!(
                responses, count,
                "{}: every response has status {}",
                self.what, self.status
            );
        });
    }

    fn check(&self) {
        let mut server = Setup::new().tables(self.tables).keys(self.keys).start();
        self.send(&server.connect(), 0..10);
        assert_eq!(server.get("/small.txt").status, 200);
        let before = server.memory();
        thread::scope(|scope| {
            for number in 0..self.connections {
                let client = server.connect();
                let first = 10 + number * self.requests;
                scope.spawn(move || self.send(&client, first..first + self.requests));
            }
        });
        let grown = server.peak().saturating_sub(before);
        println!("{}: {grown} KiB more", self.what);
        assert!(grown < MAX_KIB, "{}: memory grew by {grown} KiB", self.what);
        server.wait_for("connections close", |status| status.open == 0);
        assert_eq!(server.get("/small.txt").body, b"Hello, world!");
    }
}

#[test]
fn missing_paths_use_little_memory() {
    let long = |number| (missing(number, 7_500), LOCAL.to_owned());
    let short = |number| (missing(number, 220), LOCAL.to_owned());
    for flood in [
        Flood {
            what: "missing paths of 7.5 KB",
            requests: 6_000,
            request: long,
            ..Flood::PLAIN
        },
        Flood {
            what: "missing paths of 220 bytes",
            request: short,
            ..Flood::PLAIN
        },
        Flood {
            what: "missing paths of 7.5 KB on many connections",
            connections: 20,
            requests: 200,
            request: long,
            ..Flood::PLAIN
        },
        Flood {
            what: "missing paths of 220 bytes on many connections",
            connections: 100,
            requests: 200,
            request: short,
            ..Flood::PLAIN
        },
    ] {
        flood.check();
    }
}

#[test]
fn other_strings_of_clients_use_little_memory() {
    for flood in [
        Flood {
            what: "paths that are served by a fallback",
            // The size of the cache must stay below `MAX_KIB`.
            tables: "[cache]\nmemory = \"16MiB\"\n",
            keys: "fallback = \"/small.txt\"\n",
            request: |number| (missing(number, 400), LOCAL.to_owned()),
            status: "200",
            ..Flood::PLAIN
        },
        Flood {
            what: "encodings of one path",
            request: |number| (encoded_path(number % 3usize.pow(9)), LOCAL.to_owned()),
            status: "200",
            ..Flood::PLAIN
        },
        Flood {
            what: "queries",
            requests: 5_000,
            request: |number| (format!("/small.txt?{}", missing(number, 4_000)), LOCAL.to_owned()),
            status: "200",
            ..Flood::PLAIN
        },
        Flood {
            what: "host names",
            request: |number| ("/small.txt".to_owned(), format!("h{number}.{}", ["x"; 100].join("."))),
            status: "200",
            ..Flood::PLAIN
        },
        Flood {
            what: "lines of the access log",
            tables: "[log]\naccess = \"access.log\"\n",
            requests: 5_000,
            request: |number| (format!("/small.txt?{}", missing(number, 7_500)), LOCAL.to_owned()),
            status: "200",
            ..Flood::PLAIN
        },
    ] {
        flood.check();
    }
}
