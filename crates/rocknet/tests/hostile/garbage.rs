//! Ten thousand connections that send garbage: the server keeps no memory, descriptor or connection of theirs.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::thread;

use crate::SMALL;
use crate::child::{DEADLINE, Setup};

/// Random number generator with a fixed seed, so that every run is the same (xorshift64*).
struct Random(u64);

impl Random {
    /// Returns a number less than `below`, or 0 if `below` is 0.
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % below.max(1)
    }
}

const GARBAGE_CONNECTIONS: usize = 10_000;
const GARBAGE_THREADS: usize = 4;
/// Maximum growth of resident memory: enough for caches and buffers, but not for data that is kept per connection.
const GARBAGE_MEMORY_KIB: u64 = 16 * 1024;

#[test]
fn ten_thousand_garbage_connections_leave_no_resources() {
    let mut server = Setup::new()
        .tables("[limits]\nheader_timeout = \"2s\"\nbody_idle = \"2s\"\nkeep_alive = \"2s\"")
        .start();
    let seeds = seeds();
    let address = server.address();
    server.get("/small.txt");
    send_garbage(address, &seeds, 500, 1);
    let before = (server.memory(), server.descriptors());
    thread::scope(|scope| {
        for number in 0..GARBAGE_THREADS {
            let seeds = &seeds;
            scope.spawn(move || send_garbage(address, seeds, GARBAGE_CONNECTIONS / GARBAGE_THREADS, number as u64 + 2));
        }
        let mut innocent = server.connect();
        for _ in 0..200 {
            match innocent.try_get("/small.txt") {
                Ok(response) => assert_eq!(response.body, SMALL),
                Err(error) => panic!("another client was affected: {error}"),
            }
        }
    });
    let status = server.wait_for("connections close", |status| status.open == 0);
    assert!(status.total as usize >= GARBAGE_CONNECTIONS, "{status:?}");
    let after = (server.memory(), server.descriptors());
    assert!(
        after.0 <= before.0 + GARBAGE_MEMORY_KIB,
        "memory grew from {} to {} KiB",
        before.0,
        after.0
    );
    // If connections left descriptors open, the server would have far more than four additional ones.
    assert!(after.1 <= before.1 + 4, "{} descriptors, {} before", after.1, before.1);
    assert_eq!(server.get("/small.txt").body, SMALL);
    let (status, errors) = server.stop();
    assert!(status.success(), "{status}");
    assert!(!errors.contains("panic"), "{errors}");
}

/// Returns the seeds of the fuzz target for HTTP/1 requests.
fn seeds() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/h1_request");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("seeds")
        .map(|entry| entry.expect("a seed").path())
        .collect();
    files.sort();
    assert!(files.len() >= 8, "{} seeds", files.len());
    files.into_iter().map(|file| fs::read(file).expect("a seed")).collect()
}

fn send_garbage(address: SocketAddr, seeds: &[Vec<u8>], connections: usize, seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut sink = vec![0; 64 * 1024];
    for _ in 0..connections {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("an option");
        let bytes = random_bytes(seeds, &mut random);
        // The server may close before it has read everything.
        let _ = stream.write_all(&bytes);
        let manner = random.next(4);
        if manner == 0 {
            // The socket is closed without reading, so the kernel replies with a reset to data from the server.
            continue;
        }
        // Without an end of input the server would wait for more data; hostile/slow.rs tests its timeouts.
        let _ = stream.shutdown(Shutdown::Write);
        // Some clients close after a single byte of the response, the others read until the server closes.
        if manner == 1 {
            let _ = stream.read(&mut sink[..1]);
            continue;
        }
        loop {
            match stream.read(&mut sink) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    panic!(
                        "the server did not close the connection after {:?}",
                        String::from_utf8_lossy(&bytes)
                    )
                }
                Err(_) => break,
            }
        }
    }
}

/// Returns random bytes, valid requests or a seed, changed in up to seven places.
fn random_bytes(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = match random.next(4) {
        0 => (0..random.next(2000)).map(|_| random.next(256) as u8).collect(),
        1 => b"GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1 + random.next(20)),
        _ => seeds[random.next(seeds.len())].clone(),
    };
    for _ in 0..random.next(8) {
        let at = random.next(bytes.len() + 1);
        match random.next(4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, b"\r\n\0 :;,%\x80/.?"[random.next(12)]),
            2 => {
                let other = &seeds[random.next(seeds.len())];
                let from = random.next(other.len() + 1);
                bytes.splice(at..at, other[from..].iter().copied());
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.next(8);
                }
            }
        }
    }
    bytes
}
