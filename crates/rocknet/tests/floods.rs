//! Clients that fill tables with their own strings: the memory of the built program stays within a bound.

mod child;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;

use child::{Client, Setup};

/// Memory that a flood may take beside what the server holds after its first answers, in KiB.
const MOST_KIB: u64 = 32 * 1024;

/// A path of `length` bytes to which no file leads, and which differs for each `number`.
fn missing(number: usize, length: usize) -> String {
    const SEGMENT: usize = 200;
    let mut path = format!("/{number:07}");
    while path.len() < length {
        let room = length - path.len();
        path.push('/');
        path.extend(std::iter::repeat_n('x', room.min(SEGMENT) - 1));
    }
    path
}

/// Sends `count` requests for missing paths at once and reads all answers.
fn flood(client: &Client, first: usize, count: usize, length: usize) {
    let (mut input, mut output) = (client.stream(), client.stream());
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut batch = Vec::new();
            for number in first..first + count {
                let path = missing(number, length);
                batch.extend_from_slice(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
                if batch.len() >= 64 * 1024 {
                    output.write_all(&batch).expect("a server that reads");
                    batch.clear();
                }
            }
            output.write_all(&batch).expect("a server that reads");
            output.shutdown(Shutdown::Write).expect("an open socket");
        });
        let (mut answers, mut kept) = (0, Vec::new());
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let got = input.read(&mut buffer).expect("answers");
            if got == 0 {
                break;
            }
            kept.extend_from_slice(&buffer[..got]);
            answers += memchr::memmem::find_iter(&kept, START).count();
            // The beginning of an answer may be split between two reads.
            kept.drain(..kept.len() - kept.len().min(START.len() - 1));
        }
        assert_eq!(answers, count, "answers with 404 to paths of {length} bytes");
    });
}

const START: &[u8] = b"HTTP/1.1 404 ";

#[test]
fn missing_paths_take_little_memory() {
    // Paths of 7.5 KB on one connection, of 220 bytes on one, and of 220 bytes on many.
    for (connections, count, length) in [(1, 10_000, 7_500), (1, 20_000, 220), (100, 200, 220), (20, 200, 7_500)] {
        let mut server = Setup::new().start();
        flood(&server.connect(), 0, 10, length);
        assert_eq!(server.get("/small.txt").status, 200);
        let before = server.memory();
        thread::scope(|scope| {
            for number in 0..connections {
                let client = server.connect();
                scope.spawn(move || flood(&client, number * count, count, length));
            }
        });
        let grown = server.peak().saturating_sub(before);
        println!("{connections} connections, {count} paths of {length} bytes each: {grown} KiB more");
        assert!(
            grown < MOST_KIB,
            "{connections} connections, {count} paths of {length} bytes each took {grown} KiB"
        );
        server.wait_for("connections close", |status| status.open == 0);
        assert_eq!(server.get("/small.txt").body, b"Hello, world!");
    }
}
