//! Attacks with frames and streams of HTTP/3: the server closes the connection of each attack with the right error
//! code, uses little memory for it, and continues to serve other clients.

use std::time::{Duration, Instant};

use quinn::{Connection, ConnectionError, VarInt};

use crate::secure::{NAME, SecureServer, Target};
use crate::support::background::Background;
use crate::support::http3::{connect_with, get_frame};

/// Error codes of RFC 9114 §8.1 and RFC 9204 §6.
const STREAM_CREATION_ERROR: u32 = 0x103;
const FRAME_UNEXPECTED: u32 = 0x105;
const EXCESSIVE_LOAD: u32 = 0x107;
const REQUEST_CANCELLED: u32 = 0x10c;
const QPACK_DECOMPRESSION_FAILED: u32 = 0x200;
const QPACK_ENCODER_STREAM_ERROR: u32 = 0x201;

/// Number of calls of [`Flood::step`] in a flood, far above every limit of the server. The flood ends earlier if the
/// server closes the connection.
const STEPS: u32 = 20_000;
/// Number of steps after which the client receives what has arrived.
const STEPS_PER_TURN: u32 = 64;
/// Maximum number of floods of one kind. The client of at least one of them has to receive the error code.
const ATTEMPTS: usize = 10;
/// Number of concurrent attackers, large enough to make the memory for one of them measurable.
const ATTACKERS: usize = 10;
/// Maximum growth of the server's memory in KiB for all attackers together: 3 MiB for each.
const MEMORY_KIB: u64 = 30 * 1024;

/// Connection of an attacker, which writes frames itself.
struct Attacker {
    runtime: Background,
    _endpoint: quinn::Endpoint,
    connection: Connection,
}

impl Attacker {
    fn connect(target: &Target) -> Attacker {
        Attacker::connect_with(target, quinn::TransportConfig::default())
    }

    fn connect_with(target: &Target, transport: quinn::TransportConfig) -> Attacker {
        let connected = connect_with(&target.tls(), target.address, transport);
        let (runtime, endpoint, connection) = connected.expect("a connection");
        Attacker {
            runtime,
            _endpoint: endpoint,
            connection,
        }
    }

    /// Waits until the server closes the connection. Returns the error code, or `None` if a stateless reset arrived
    /// first. On a busy machine, a client that still sends can receive both.
    fn code(&self) -> Option<VarInt> {
        match self.runtime.block_on(self.connection.closed()) {
            ConnectionError::ApplicationClosed(closed) => Some(closed.error_code),
            ConnectionError::Reset => None,
            other => panic!("not closed by the server: {other}"),
        }
    }
}

/// Opens a unidirectional stream and writes bytes to it. Returns `None` if the connection is closed.
async fn open(connection: &Connection, bytes: &[u8]) -> Option<quinn::SendStream> {
    let mut stream = connection.open_uni().await.ok()?;
    stream.write_all(bytes).await.ok()?;
    Some(stream)
}

/// Opens a request stream and writes bytes to it. Returns `None` if the connection is closed.
async fn request(connection: &Connection, bytes: &[u8]) -> Option<(quinn::SendStream, quinn::RecvStream)> {
    let (mut send, receive) = connection.open_bi().await.ok()?;
    send.write_all(bytes).await.ok()?;
    Some((send, receive))
}

/// Control stream with empty SETTINGS.
const CONTROL: &[u8] = &[0, 4, 0];

#[test]
fn streams_and_frames_in_the_wrong_place_close_the_connection() {
    let server = SecureServer::start("keep_alive = \"1s\"");
    let target = &server.target;
    let before = server.warm();
    // Name, bytes of each unidirectional stream, and expected error code.
    let rows: &[(&str, &[&[u8]], u32)] = &[
        ("a second control stream", &[CONTROL, CONTROL], STREAM_CREATION_ERROR),
        ("a second encoder stream", &[CONTROL, &[2], &[2]], STREAM_CREATION_ERROR),
        ("a second decoder stream", &[CONTROL, &[3], &[3]], STREAM_CREATION_ERROR),
        ("a push stream", &[CONTROL, &[1, 0]], STREAM_CREATION_ERROR),
        ("SETTINGS twice", &[&[0, 4, 0, 4, 0]], FRAME_UNEXPECTED),
        (
            "a table larger than the server permits",
            &[CONTROL, &[2, 0x3f, 0xff, 0xff, 0xff, 0x07]],
            QPACK_ENCODER_STREAM_ERROR,
        ),
        (
            "an insertion that refers to no entry",
            &[CONTROL, &[2, 0x3f, 0xe1, 0x1f, 0x80, 1, b'a']],
            QPACK_ENCODER_STREAM_ERROR,
        ),
    ];
    for (what, streams, code) in rows {
        let attacker = Attacker::connect(target);
        target.beside(|| {
            attacker.runtime.block_on(async {
                let mut opened = Vec::new();
                for bytes in *streams {
                    opened.push(open(&attacker.connection, bytes).await);
                }
                attacker.connection.closed().await;
            });
            assert_eq!(attacker.code(), Some(VarInt::from_u32(*code)), "{what}");
        });
    }
    server.finish(before, MEMORY_KIB);
}

/// Flood of one connection.
#[derive(Clone, Copy, Debug)]
enum Flood {
    /// Requests that are reset at once (CVE-2023-44487).
    RapidReset,
    /// Frames of an unknown type on the control stream.
    UnknownFrames,
    /// PRIORITY_UPDATE frames for a request stream.
    PriorityUpdates,
    /// GOAWAY frames on the control stream.
    Goaway,
    /// Unidirectional streams of an unknown type that are reset.
    StreamChurn,
    /// Insertions into the dynamic table that no request refers to.
    Insertions,
    /// Cancellations of streams that do not exist.
    Cancellations,
    /// Requests that refer to insertions that never arrive.
    BlockedStreams,
}

/// All floods, each with the error code with which the server closes the connection.
const FLOODS: &[(Flood, u32)] = &[
    (Flood::RapidReset, EXCESSIVE_LOAD),
    (Flood::UnknownFrames, EXCESSIVE_LOAD),
    (Flood::PriorityUpdates, EXCESSIVE_LOAD),
    (Flood::Goaway, EXCESSIVE_LOAD),
    (Flood::StreamChurn, EXCESSIVE_LOAD),
    (Flood::Insertions, EXCESSIVE_LOAD),
    (Flood::Cancellations, EXCESSIVE_LOAD),
    // The error of more blocked streams than the server permits (RFC 9204 §2.1.2).
    (Flood::BlockedStreams, QPACK_DECOMPRESSION_FAILED),
];

/// Streams that a flood keeps open.
#[derive(Default)]
struct Streams {
    control: Option<quinn::SendStream>,
    encoder: Option<quinn::SendStream>,
    decoder: Option<quinn::SendStream>,
    requests: Vec<(quinn::SendStream, quinn::RecvStream)>,
}

impl Streams {
    async fn open(connection: &Connection) -> Streams {
        Streams {
            control: open(connection, CONTROL).await,
            // An encoder stream that sets the capacity of the dynamic table to 4,096 bytes.
            encoder: open(connection, &[2, 0x3f, 0xe1, 0x1f]).await,
            decoder: open(connection, &[3]).await,
            requests: Vec::new(),
        }
    }
}

/// Writes bytes to a stream. Returns `None` if the stream was not opened, or if the connection is closed.
async fn write(stream: Option<&mut quinn::SendStream>, bytes: &[u8]) -> Option<()> {
    stream?.write_all(bytes).await.ok()
}

impl Flood {
    /// Runs one step. Returns `None` once the connection is closed.
    async fn step(self, connection: &Connection, streams: &mut Streams) -> Option<()> {
        match self {
            Flood::RapidReset => {
                let (mut send, mut receive) = request(connection, &get_frame(NAME, "/page.bin")).await?;
                let _ = send.reset(VarInt::from_u32(REQUEST_CANCELLED));
                let _ = receive.stop(VarInt::from_u32(REQUEST_CANCELLED));
                Some(())
            }
            Flood::UnknownFrames => write(streams.control.as_mut(), &[0x21, 0]).await,
            Flood::PriorityUpdates => {
                let update = [0x80, 0x0f, 0x07, 0, 4, 0, b'u', b'=', b'1'];
                write(streams.control.as_mut(), &update).await
            }
            Flood::Goaway => write(streams.control.as_mut(), &[7, 1, 0]).await,
            Flood::StreamChurn => {
                let mut stream = open(connection, &[0x21]).await?;
                let _ = stream.reset(VarInt::from_u32(REQUEST_CANCELLED));
                Some(())
            }
            Flood::Insertions => write(streams.encoder.as_mut(), &[0x41, b'a', 1, b'b']).await,
            Flood::Cancellations => write(streams.decoder.as_mut(), &[0x41]).await,
            Flood::BlockedStreams => {
                // A HEADERS frame whose field section needs one insertion, and consists of the inserted entry.
                let opened = request(connection, &[1, 3, 2, 0, 0x80]).await?;
                streams.requests.push(opened);
                Some(())
            }
        }
    }
}

#[test]
fn a_flood_closes_only_its_own_connection() {
    let server = SecureServer::start("keep_alive = \"1s\"");
    let target = &server.target;
    let attack = |flood: Flood, code: u32| {
        let attacker = Attacker::connect(target);
        // The streams stay open until the server closes the connection, because the end of a critical stream would also
        // close it, with another error code.
        let _streams = attacker.runtime.block_on(async {
            let mut streams = Streams::open(&attacker.connection).await;
            for step in 0..STEPS {
                if flood.step(&attacker.connection, &mut streams).await.is_none() {
                    break;
                }
                // Lets the thread of the client receive, so that its receive buffer has room for the error code. The
                // task ends after the thread has polled its sockets.
                if step % STEPS_PER_TURN == 0 {
                    tokio::spawn(tokio::task::yield_now()).await.expect("no panic");
                }
            }
            streams
        });
        let found = attacker.code();
        assert!(
            found.is_none_or(|found| found == VarInt::from_u32(code)),
            "{flood:?}: {found:?}"
        );
        found
    };
    let mut before = server.warm();
    for (flood, code) in FLOODS {
        // A client that still sends may lose the error code, because its receive buffer is full, and get only a
        // stateless reset.
        let gets_code = (0..ATTEMPTS).any(|_| attack(*flood, *code).is_some());
        assert!(gets_code, "{flood:?}: no client got the error code");
    }
    before = before.max(server.server.memory());
    for (flood, code) in FLOODS {
        target.beside(|| {
            std::thread::scope(|scope| {
                for _ in 0..ATTACKERS {
                    scope.spawn(|| attack(*flood, *code));
                }
            });
        });
    }
    server.finish(before, MEMORY_KIB);
}

/// Field sections that are small on the wire and large when they are decoded.
#[test]
fn expanding_field_sections_end_the_connection_within_bounds() {
    // Number of references to an entry of 4000 bytes, and true if the connection ends. Each row exceeds the limit on
    // the decoded size of a field section.
    const ROWS: [(usize, bool); 2] = [(40, false), (8000, true)];
    let server = SecureServer::start("keep_alive = \"1s\"");
    let target = &server.target;
    let before = server.warm();
    for (references, ends) in ROWS {
        target.beside(|| {
            let attacker = Attacker::connect(target);
            let response = attacker.runtime.block_on(async {
                let mut streams = Streams::open(&attacker.connection).await;
                // A literal name of one byte, and a value of 3967 bytes. The overhead of 32 bytes makes it 4000.
                let value = vec![b'v'; 3967];
                // The length of the value, which QPACK encodes in three bytes: 127 + 0 + 30 * 128.
                let length = [0x7f, 0x80, 30];
                let insertion = [&[0x41, b'a'][..], &length, &value].concat();
                write(streams.encoder.as_mut(), &insertion).await.expect("a connection");
                // The prefix requires one entry of the dynamic table. Each byte 0x80 refers to that entry.
                let section = [&[2, 0][..], &vec![0x80; references]].concat();
                // A HEADERS frame. Its length is a variable-length integer of two bytes, as 0x4000 marks it.
                let head = [&[1][..], &(0x4000 | section.len() as u16).to_be_bytes(), &section].concat();
                let (mut send, mut receive) = request(&attacker.connection, &head).await.expect("a connection");
                let _ = send.finish();
                receive.read_to_end(16 * 1024).await
            });
            if ends {
                assert_eq!(attacker.code(), Some(VarInt::from_u32(EXCESSIVE_LOAD)), "{references}");
            } else {
                // A HEADERS frame, which refuses the request.
                assert_eq!(response.expect("a response")[0], 1, "{references}");
            }
        });
    }
    server.finish(before, MEMORY_KIB);
}

#[test]
fn clients_that_do_not_read_are_cut_and_use_little_memory() {
    const STREAMS: usize = 100;
    let server = SecureServer::start("send_stall = \"1s\"\nkeep_alive = \"1s\"");
    let target = &server.target;
    let before = server.warm();
    target.beside(|| {
        let mut attackers = Vec::new();
        for _ in 0..ATTACKERS {
            let mut transport = quinn::TransportConfig::default();
            transport.stream_receive_window(16_000_u32.into());
            let attacker = Attacker::connect_with(target, transport);
            let streams = attacker.runtime.block_on(async {
                let mut streams = Vec::new();
                for _ in 0..STREAMS {
                    let head = get_frame(NAME, "/large.bin");
                    let (mut send, receive) = request(&attacker.connection, &head).await.expect("a connection");
                    send.finish().expect("an open stream");
                    streams.push(receive);
                }
                streams
            });
            attackers.push((attacker, streams));
        }
        // All streams stall at the same time, so all are reset soon after `send_stall`.
        let began = Instant::now();
        for (attacker, streams) in &mut attackers {
            for stream in streams {
                let reset = attacker.runtime.block_on(stream.received_reset());
                assert_eq!(reset, Ok(Some(VarInt::from_u32(REQUEST_CANCELLED))));
            }
        }
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    });
    server.finish(before, MEMORY_KIB);
}
