//! HTTP/2 floods over real sockets: the server closes the connection of each flood with the right error code, uses
//! little memory for it, and continues to serve other clients.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use crate::SMALL;
use crate::child::{DEADLINE, Server, Setup};
use crate::wire::{
    self, CONTINUATION, DATA, END_STREAM, Frame, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, PING, PRIORITY, SETTINGS,
    beginning, body_frames, frame, get, open_beginning, post, rst, settings, window,
};

/// Error code of RFC 9113 §7.
const ENHANCE_YOUR_CALM: u32 = 11;
/// Maximum number of steps of a flood, each of one or two frames. It is far above every limit. A flood ends earlier if
/// the server closes the connection.
const FRAMES: u32 = 20_000;
/// Steps in one write.
const BATCH: u32 = 100;
/// Length of a short flood in bytes. The server reads all of it even after a GOAWAY, because it discards up to 1 MiB.
const READ_AFTER_GOAWAY: usize = 900_000;
/// Number of concurrent attackers, large enough that the cost of one is measurable in the memory of the server.
const ATTACKERS: usize = 20;
/// Maximum resident memory in KiB for all attackers together, about one megabyte for each.
const MEMORY_KIB: u64 = 24 * 1024;

/// Name of a flood, function that returns the bytes before it, and function that returns the frames of the step with a
/// given number.
type Flood = (&'static str, fn() -> Vec<u8>, fn(u32) -> Vec<u8>);

/// Returns the identifier of the client stream with this index.
fn stream(number: u32) -> u32 {
    2 * number + 1
}

const FLOODS: &[Flood] = &[
    ("rapid reset", open_beginning, |n| {
        [get(stream(n), "/page.bin"), rst(stream(n))].concat()
    }),
    ("stream errors by a window update of zero", open_beginning, |n| {
        [get(stream(n), "/large.bin"), window(stream(n), 0)].concat()
    }),
    ("stream errors by a window that overflows", open_beginning, |n| {
        [get(stream(n), "/large.bin"), window(stream(n), wire::WINDOW_MAX)].concat()
    }),
    ("stream errors by data after the end", open_beginning, |n| {
        [get(stream(n), "/large.bin"), frame(DATA, 0, stream(n), "x")].concat()
    }),
    ("malformed requests", open_beginning, |n| {
        wire::request(stream(n), "GET", "/", &[("connection", "close")], true)
    }),
    (
        "empty CONTINUATION",
        || [open_beginning(), frame(HEADERS, END_STREAM, 1, "")].concat(),
        |_| frame(CONTINUATION, 0, 1, ""),
    ),
    (
        "endless CONTINUATION",
        || [open_beginning(), frame(HEADERS, END_STREAM, 1, "")].concat(),
        |_| frame(CONTINUATION, 0, 1, vec![0; 4000]),
    ),
    ("PING", open_beginning, |_| frame(PING, 0, 0, [0; 8])),
    ("SETTINGS", open_beginning, |_| settings(&[])),
    ("SETTINGS that change every window", open_beginning, |n| {
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
    ("window updates of one byte", || beginning(&[]), |_| window(0, 1)),
    (
        "window updates that permit one byte of a body",
        || [beginning(&[(INITIAL_WINDOW_SIZE, 1)]), get(1, "/large.bin")].concat(),
        |_| window(1, 1),
    ),
    ("unknown frames", open_beginning, |_| frame(0x77, 0, 0, "what")),
];

/// Sends a flood and reads at the same time. Returns the GOAWAY frames that were received.
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
                // A failed write means that the server has closed the connection, as expected.
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
                // The server closed the connection before it had read the whole flood.
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

/// Runs `attack` while another client sends requests, which must succeed.
fn with_other_client(server: &Server, attack: impl FnOnce() + Send) {
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
fn a_flood_closes_only_its_own_connection() {
    let mut server = start("keep_alive = \"10s\"");
    let address = server.address();
    server.get("/page.bin");
    server.get("/large.bin");
    for flood in FLOODS {
        attack(address, flood);
    }
    let before = server.memory();
    for flood in FLOODS {
        let name = flood.0;
        with_other_client(&server, || {
            thread::scope(|scope| {
                for _ in 0..ATTACKERS {
                    scope.spawn(|| {
                        let last = attack(address, flood);
                        let code = last.last().and_then(Frame::code);
                        // A TCP reset can discard the GOAWAY before it is read, but no other error code must arrive.
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
        // The flood exceeds every limit, but is short enough for the server to read all of it after its GOAWAY, so no
        // TCP reset discards the GOAWAY.
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("an option");
        let (name, before, frames) = flood;
        let mut bytes = before();
        let frames = (0..1_200).map(frames).take_while(|frame| {
            bytes.extend_from_slice(frame);
            bytes.len() < READ_AFTER_GOAWAY
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

/// Streams whose flow-control windows stay at zero use little memory and are reset after `send_stall`.
#[test]
fn streams_with_closed_windows_use_little_memory_and_time_out() {
    /// Number of concurrent streams that the server permits on a connection.
    const MAX_STREAMS: u32 = 128;
    let mut server = start("send_stall = \"1s\"\nkeep_alive = \"1s\"");
    let address = server.address();
    server.get("/page.bin");
    server.get("/large.bin");
    let before = server.memory();
    let mut clients = Vec::new();
    // The path that names no file differs for each stream.
    for path in ["/page.bin", "/large.bin", "/missing/"] {
        for attacker in 0..ATTACKERS {
            let mut stream = TcpStream::connect(address).expect("a connection");
            stream.set_read_timeout(Some(DEADLINE)).expect("an option");
            let path = |number| match path {
                "/missing/" => format!("{path}{attacker}/{number}{}", "/xxxxxxx".repeat(100)),
                _ => path.to_owned(),
            };
            let requests: Vec<u8> = (0..MAX_STREAMS)
                .flat_map(|number| get(self::stream(number), &path(number)))
                .collect();
            stream.write_all(&beginning(&[(INITIAL_WINDOW_SIZE, 0)])).expect("sent");
            stream.write_all(&requests).expect("sent");
            clients.push(stream);
        }
    }
    let all = clients.len() as u64;
    server.wait_for("all connections are accepted", |status| status.total >= all);
    with_other_client(&server, || {
        for client in &mut clients {
            let mut received = Vec::new();
            client.read_to_end(&mut received).expect("an end");
            let (frames, _) = wire::frames(&received);
            let reset = frames.iter().filter(|frame| frame.kind == wire::RST_STREAM).count();
            assert_eq!(reset as u32, MAX_STREAMS, "every stream must be reset");
            assert!(
                frames
                    .iter()
                    .all(|frame| frame.kind != DATA || frame.payload.is_empty())
            );
        }
    });
    // The clients have opened 7,680 streams. A third of them requested a file that is read in pieces.
    let after = server.peak();
    assert!(
        after <= before + MEMORY_KIB,
        "memory grew from {before} KiB, to {after} at the most"
    );
    server.wait_for("connections close", |status| status.open == 0);
}

/// Returns the number of bytes that the kernel buffers between two sockets when the receiver does not read.
fn kernel_buffer_size() -> usize {
    let most = |name: &str| -> usize {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).expect("three numbers");
        let most = text.split_whitespace().last().and_then(|most| most.parse().ok());
        most.expect("a number of bytes")
    };
    most("tcp_rmem") + most("tcp_wmem")
}

/// The server must stop reading from a client that never reads its responses.
#[test]
fn a_client_that_never_reads_does_not_fill_memory() {
    /// Maximum number of bytes that the server may read from a client that does not read.
    const MAX_BUFFERED: usize = 8 << 20;
    let most = kernel_buffer_size() + MAX_BUFFERED;
    let server = start("send_stall = \"2s\"");
    server.get("/page.bin");
    let before = server.memory();
    let address = server.address();
    /// Name of the frames that a client sends, and function that returns the frames with a given number.
    type Kind = (&'static str, fn(u32) -> Vec<u8>);
    let kinds: &[Kind] = &[
        ("requests", |n| get(stream(n), "/page.bin")),
        ("a body that is not read", |n| {
            [post(stream(n), "/small.txt"), body_frames(stream(n), &[b'x'; 100])].concat()
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
                // Writes fail once the server has closed the connection, because the client reads nothing for
                // `send_stall`.
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

/// If a file is truncated while it is sent, the server resets its stream, or closes the connection if a frame header
/// with the full length was already sent. The client can therefore not mistake the part for the whole file.
#[test]
fn a_file_truncated_while_sent_does_not_end_like_a_complete_one() {
    const SIZE: usize = 64 << 20;
    for (windows, beginning) in [("open", open_beginning()), ("default", beginning(&[]))] {
        let server = start("");
        let file = server.setup.path("cut.bin");
        server.setup.sparse("cut.bin", SIZE as u64);
        let mut client = TcpStream::connect(server.address()).expect("a connection");
        client.set_read_timeout(Some(DEADLINE)).expect("an option");
        let requests = [beginning, get(1, "/cut.bin")].concat();
        client.write_all(&requests).expect("sent");
        // Waits for a first DATA frame. The server cannot send the whole file, because the windows are exhausted or the
        // socket is full.
        let (mut received, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
        while !wire::frames(&received).0.iter().any(|frame| frame.kind == DATA) {
            let size = client.read(&mut buffer).expect("a part of the file");
            assert!(size > 0, "{windows}: the connection was closed early");
            received.extend_from_slice(&buffer[..size]);
        }
        let file = OpenOptions::new().write(true).open(file);
        file.and_then(|file| file.set_len(1000)).expect("cut");
        // With the default windows, the server can send more only after they have been extended.
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
        let received = wire::body_of(&frames, 1).len();
        assert!(received < SIZE, "{windows}: {received} bytes of a truncated file");
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
