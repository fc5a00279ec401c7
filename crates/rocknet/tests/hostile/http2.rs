//! HTTP/2 floods over real sockets: each ends its own connection with the right error code, costs little memory, and
//! affects no other client.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use crate::SMALL;
use crate::child::{DEADLINE, Server, Setup};
use crate::wire::{
    self, CONTINUATION, DATA, END_STREAM, Frame, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, PING, PRIORITY, SETTINGS,
    beginning, content, frame, get, open_beginning, post, rst, settings, window,
};

const ENHANCE_YOUR_CALM: u32 = 11;
/// Frames sent by a flood unless the connection ends earlier, far above every limit.
const FRAMES: u32 = 20_000;
/// Frames in one write.
const BATCH: u32 = 100;
/// Less than the server reads after its GOAWAY.
const LINGERED: usize = 900_000;
/// Concurrent attackers, so that the cost of each shows in the memory of the server.
const ATTACKERS: usize = 20;
/// Resident memory in KiB that all of them together may take at any time: about a megabyte each.
const MEMORY_KIB: u64 = 24 * 1024;

/// A flood: its name, the bytes before it, and its frames by number.
type Flood = (&'static str, fn() -> Vec<u8>, fn(u32) -> Vec<u8>);

/// Identifier of the client stream with this index.
fn stream(number: u32) -> u32 {
    2 * number + 1
}

const FLOODS: &[Flood] = &[
    ("rapid reset", open_beginning, |n| {
        [get(stream(n), "/page.bin"), rst(stream(n))].concat()
    }),
    ("made to reset by a window of nothing", open_beginning, |n| {
        [get(stream(n), "/large.bin"), window(stream(n), 0)].concat()
    }),
    ("made to reset by a window too large", open_beginning, |n| {
        [get(stream(n), "/large.bin"), window(stream(n), wire::WINDOW_MAX)].concat()
    }),
    ("made to reset by data after the end", open_beginning, |n| {
        [get(stream(n), "/large.bin"), frame(DATA, 0, stream(n), "x")].concat()
    }),
    ("malformed requests", open_beginning, |n| {
        wire::request(stream(n), "GET", "/", &[("connection", "close")], true)
    }),
    (
        "CONTINUATION of nothing",
        || [open_beginning(), frame(HEADERS, END_STREAM, 1, "")].concat(),
        |_| frame(CONTINUATION, 0, 1, ""),
    ),
    (
        "CONTINUATION without end",
        || [open_beginning(), frame(HEADERS, END_STREAM, 1, "")].concat(),
        |_| frame(CONTINUATION, 0, 1, vec![0; 4000]),
    ),
    ("PING", open_beginning, |_| frame(PING, 0, 0, [0; 8])),
    ("SETTINGS", open_beginning, |_| settings(&[])),
    ("SETTINGS that move every window", open_beginning, |n| {
        settings(&[(INITIAL_WINDOW_SIZE, n)])
    }),
    (
        "empty DATA",
        || [open_beginning(), post(1, "/small.txt")].concat(),
        |_| frame(DATA, 0, 1, ""),
    ),
    ("empty HEADERS", open_beginning, |n| {
        frame(HEADERS, END_STREAM | wire::END_HEADERS, stream(n), "")
    }),
    ("PRIORITY", open_beginning, |n| {
        frame(PRIORITY, 0, stream(n) + 2, [0, 0, 0, 1, 16])
    }),
    ("windows byte by byte", || beginning(&[]), |_| window(0, 1)),
    (
        "content byte by byte",
        || [beginning(&[(INITIAL_WINDOW_SIZE, 1)]), get(1, "/large.bin")].concat(),
        |_| window(1, 1),
    ),
    ("unknown frames", open_beginning, |_| frame(0x77, 0, 0, "what")),
];

/// A client that sends all it can while it reads, and returns the frames it received.
fn attack(address: SocketAddr, flood: &Flood) -> Vec<Frame> {
    let (_, before, frames) = flood;
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("an option");
    let mut writing = stream.try_clone().expect("another handle");
    thread::scope(|scope| {
        scope.spawn(move || {
            let _ = writing.write_all(&before());
            for batch in 0..FRAMES / BATCH {
                let bytes: Vec<u8> = (batch * BATCH..(batch + 1) * BATCH).flat_map(frames).collect();
                // The server may have closed: then the flood was large enough.
                if writing.write_all(&bytes).is_err() {
                    return;
                }
            }
            let _ = writing.shutdown(std::net::Shutdown::Write);
        });
        let mut received = Vec::new();
        let mut last = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(size) => received.extend_from_slice(&buffer[..size]),
                // The server closed with bytes of the flood unread.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("{}: {error}", flood.0),
            }
            let (frames, used) = wire::frames(&received);
            received.drain(..used);
            last.extend(frames.into_iter().filter(|frame| frame.kind == GOAWAY));
        }
        last
    })
}

fn start(limits: &str) -> Server {
    let setup = Setup::new().tables(&format!("h2c = true\n[limits]\n{limits}"));
    setup.file("page.bin", vec![b'x'; 10_000]);
    setup.file("large.bin", vec![b'x'; 300_000]);
    setup.start()
}

/// Sends requests from another client while the attack lasts.
fn innocent(server: &Server, attack: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let attack = scope.spawn(attack);
        let mut innocent = server.connect();
        while !attack.is_finished() {
            match innocent.try_get("/small.txt") {
                Ok(response) => assert_eq!(response.body, SMALL),
                Err(error) => panic!("another client was affected: {error}"),
            }
        }
    });
}

#[test]
fn floods_end_only_their_own_connections() {
    let mut server = start("keep_alive = \"2s\"");
    let address = server.address();
    server.get("/page.bin");
    server.get("/large.bin");
    for flood in FLOODS {
        attack(address, flood);
    }
    let before = server.memory();
    for flood in FLOODS {
        let name = flood.0;
        innocent(&server, || {
            thread::scope(|scope| {
                for _ in 0..ATTACKERS {
                    scope.spawn(|| {
                        let last = attack(address, flood);
                        let code = last.last().and_then(Frame::code);
                        // A reset may overtake and discard the GOAWAY, but no other error code may arrive.
                        assert!(code.is_none_or(|code| code == ENHANCE_YOUR_CALM), "{name}: {last:?}");
                    });
                }
            });
        });
        let after = server.peak();
        assert!(
            after <= before + MEMORY_KIB,
            "{name}: memory grew from {before} KiB, to {after} at the most"
        );
    }
    server.wait_for("connections close", |status| status.open == 0);
    let (status, errors) = server.stop();
    assert!(status.success(), "{status}");
    assert!(!errors.contains("panic"), "{errors}");
}

#[test]
fn a_flood_gets_a_goaway_with_its_reason() {
    let server = start("");
    for flood in FLOODS {
        // Small enough to be read completely after the frame that ends it, so that no reset discards the GOAWAY.
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("an option");
        let (name, before, frames) = flood;
        let mut bytes = before();
        let frames = (0..1_200).map(frames).take_while(|frame| {
            bytes.extend_from_slice(frame);
            bytes.len() < LINGERED
        });
        assert!(frames.count() > 100, "{name}");
        stream.write_all(&bytes).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("an open connection");
        let mut received = Vec::new();
        let ended = stream.read_to_end(&mut received);
        assert!(ended.is_ok(), "{name}: {ended:?}");
        let (frames, _) = wire::frames(&received);
        let last = frames.iter().rev().find(|frame| frame.kind == GOAWAY);
        assert_eq!(last.and_then(Frame::code), Some(ENHANCE_YOUR_CALM), "{name}");
    }
}

/// Streams whose windows stay closed hold little memory and are ended in time.
#[test]
fn closed_windows_hold_little_memory_and_time_out() {
    let mut server = start("send_stall = \"1s\"\nkeep_alive = \"1s\"");
    let address = server.address();
    server.get("/page.bin");
    server.get("/large.bin");
    let before = server.memory();
    let mut clients = Vec::new();
    // The missing path differs for each stream.
    for path in ["/page.bin", "/large.bin", "/missing/"] {
        for attacker in 0..ATTACKERS {
            let mut stream = TcpStream::connect(address).expect("a connection");
            stream.set_read_timeout(Some(DEADLINE)).expect("an option");
            let path = |number| match path {
                "/missing/" => format!("{path}{attacker}/{number}{}", "/xxxxxxx".repeat(100)),
                _ => path.to_owned(),
            };
            let incoming: Vec<u8> = (0..128)
                .flat_map(|number| get(self::stream(number), &path(number)))
                .collect();
            stream.write_all(&beginning(&[(INITIAL_WINDOW_SIZE, 0)])).expect("sent");
            stream.write_all(&incoming).expect("sent");
            clients.push(stream);
        }
    }
    let all = clients.len() as u64;
    server.wait_for("all are there", |status| status.total >= all);
    innocent(&server, || {
        for client in &mut clients {
            let mut received = Vec::new();
            client.read_to_end(&mut received).expect("an end");
            let (frames, _) = wire::frames(&received);
            let reset = frames.iter().filter(|frame| frame.kind == wire::RST_STREAM).count();
            assert_eq!(reset, 128, "every stream is ended");
            assert!(
                frames
                    .iter()
                    .all(|frame| frame.kind != DATA || frame.payload.is_empty())
            );
        }
    });
    // 7,680 streams, a third of them of a file that is read piece by piece.
    let after = server.peak();
    assert!(
        after <= before + MEMORY_KIB,
        "memory grew from {before} KiB, to {after} at the most"
    );
    server.wait_for("connections close", |status| status.open == 0);
}

/// Bytes that the sockets between two programs hold when one writes and the other does not read.
fn kernel_room() -> usize {
    let most = |name: &str| -> usize {
        let message = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).expect("three numbers");
        let most = message.split_whitespace().last().and_then(|most| most.parse().ok());
        most.expect("a number of bytes")
    };
    most("tcp_rmem") + most("tcp_wmem")
}

/// A client that writes forever and never reads: the server receives no more than a bound.
#[test]
fn a_client_that_never_reads_fills_no_memory() {
    const TAKEN: usize = 8 << 20;
    let most = kernel_room() + TAKEN;
    let server = start("send_stall = \"2s\"");
    server.get("/page.bin");
    let before = server.memory();
    let address = server.address();
    type Kind = (&'static str, fn(u32) -> Vec<u8>);
    let kinds: &[Kind] = &[
        ("requests", |n| get(stream(n), "/page.bin")),
        ("a body that is not read", |n| {
            [post(stream(n), "/small.txt"), content(stream(n), &[b'x'; 100])].concat()
        }),
        ("pings", |_| frame(PING, 0, 0, [0; 8])),
        ("settings", |_| frame(SETTINGS, 0, 0, "")),
    ];
    thread::scope(|scope| {
        for (name, frames) in kinds {
            scope.spawn(move || {
                let mut stream = TcpStream::connect(address).expect("a connection");
                stream.set_write_timeout(Some(DEADLINE)).expect("an option");
                let mut sent = open_beginning();
                let mut number = 0;
                let mut all = 0;
                // Until the server's timeout for the client's reading has passed.
                while stream.write_all(&sent).is_ok() {
                    all += sent.len();
                    assert!(
                        all < most,
                        "{name}: the server continues to read, though its responses are not read"
                    );
                    sent = (number..number + BATCH).flat_map(frames).collect();
                    number += BATCH;
                }
            });
        }
    });
    let after = server.peak();
    assert!(
        after <= before + MEMORY_KIB,
        "memory grew from {before} KiB, to {after} at the most"
    );
    assert_eq!(server.get("/small.txt").body, SMALL);
}

/// A file truncated while it is sent ends its stream, or the connection if a frame had begun. The client never takes
/// the part for the whole, because a frame header cannot be taken back.
#[test]
fn a_file_truncated_while_sent_is_never_taken_for_whole() {
    const SIZE: usize = 64 << 20;
    for (windows, beginning) in [("open", open_beginning()), ("as they come", beginning(&[]))] {
        let server = start("");
        let file = server.setup.path("cut.bin");
        server.setup.sparse("cut.bin", SIZE as u64);
        let mut client = TcpStream::connect(server.address()).expect("a connection");
        client.set_read_timeout(Some(DEADLINE)).expect("an option");
        let incoming = [beginning, get(1, "/cut.bin")].concat();
        client.write_all(&incoming).expect("sent");
        // A frame of it has arrived; by then the windows are closed or the socket is full.
        let (mut received, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
        while !wire::frames(&received).0.iter().any(|frame| frame.kind == DATA) {
            let size = client.read(&mut buffer).expect("a part of the file");
            assert!(size > 0, "{windows}: an end");
            received.extend_from_slice(&buffer[..size]);
        }
        let file = OpenOptions::new().write(true).open(file);
        file.and_then(|file| file.set_len(1000)).expect("cut");
        let more = [window(0, 1 << 20), window(1, 1 << 20)].concat();
        client.write_all(&more).expect("sent");
        let is_over = |received: &[u8]| wire::frames(received).0.iter().any(|frame| frame.code().is_some());
        while !is_over(&received) {
            match client.read(&mut buffer) {
                Ok(0) => break,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                size => received.extend_from_slice(&buffer[..size.expect("more, or an end")]),
            }
        }
        let (frames, _) = wire::frames(&received);
        let received = wire::content_of(&frames, 1).len();
        assert!(received < SIZE, "{windows}: {received} bytes of a file cut short");
        assert!(
            !frames.iter().any(Frame::ends_stream),
            "{windows}: the stream ended as if complete"
        );
        assert_eq!(server.get("/small.txt").body, SMALL);
        let (status, errors) = server.stop();
        assert!(status.success(), "{status}");
        assert!(errors.contains("cut short"), "{windows}: nothing was logged: {errors}");
    }
}
