//! Tests the flood budgets: the accepted bursts, the end of the connection, and the refill over time.
//!
//! The flags 5 are END_STREAM and END_HEADERS, setting 4 is INITIAL_WINDOW_SIZE, and error code 8 is CANCEL.
//!
//! In calls of `respond`, the arguments after the status are the value of Content-Length, the fields, and true if the
//! response has no body. In calls of `queue_body`, the second argument is a number of bytes, and the third is true if
//! these bytes are the last.

use super::check::*;
use rocknet_proto::Limits;
use rocknet_proto::h2::{
    Config, ConnectionError, ConnectionEvent, DecodedHead, ErrorCode, Flood, ServerConnection, StreamId,
};

/// A connection that has received the client preface, with a clock in milliseconds.
struct Attack {
    connection: ServerConnection,
    head: DecodedHead,
    out: Vec<u8>,
    now: u64,
}

impl Attack {
    fn new() -> Attack {
        let mut attack = Attack {
            connection: ServerConnection::new(&Config::default()),
            head: DecodedHead::default(),
            out: Vec::new(),
            now: 1_000_000,
        };
        assert_eq!(attack.send(&beginning()), None);
        attack
    }

    /// Receives all bytes without sending a response; returns the error that ended the connection, if any.
    fn send(&mut self, bytes: &[u8]) -> Option<ConnectionError> {
        let mut at = 0;
        loop {
            let Attack {
                connection,
                head,
                out,
                now,
            } = self;
            let received = connection.receive(&Limits::default(), *now, &bytes[at..], head, out);
            at += received.consumed;
            assert!(self.connection.memory() < 256 * 1024);
            match received.event {
                ConnectionEvent::More => return None,
                ConnectionEvent::Closed { error } => return Some(error),
                _ => {}
            }
        }
    }

    /// Receives the frames of up to 10,000 rounds; returns the number of accepted rounds, and the error that ended the
    /// connection.
    fn count(&mut self, frames: impl Fn(u32) -> Vec<u8>) -> (u32, Option<ConnectionError>) {
        for round in 0..10_000 {
            if let Some(error) = self.send(&frames(round)) {
                return (round, Some(error));
            }
        }
        (10_000, None)
    }
}

/// Each flood ends the connection with ENHANCE_YOUR_CALM as soon as its burst is exhausted, and the burst refills over
/// time.
#[test]
fn floods_end_the_connection_at_their_burst() {
    // Columns: flood, frames of a round, and number of accepted rounds in addition to the burst.
    type FloodCase = (Flood, fn(u32) -> Vec<u8>, i32);
    let rows: &[FloodCase] = &[
        // Rapid reset.
        (Flood::Resets, |n| [get(2 * n + 1), rst(2 * n + 1, 8)].concat(), 0),
        // MadeYouReset in all known forms. Each makes the server reset a stream whose request is still being processed.
        (Flood::Resets, |n| [get(2 * n + 1), window(2 * n + 1, 0)].concat(), 0),
        (
            Flood::Resets,
            |n| [get(2 * n + 1), window(2 * n + 1, 0x7fff_ffff)].concat(),
            0,
        ),
        (Flood::Resets, |n| [get(2 * n + 1), data(2 * n + 1, "x")].concat(), 0),
        (
            Flood::Resets,
            |n| [get(2 * n + 1), trailers(2 * n + 1, &[])].concat(),
            0,
        ),
        (
            Flood::Resets,
            |n| [post_with(2 * n + 1, &[("content-length", "1")]), data(2 * n + 1, "xx")].concat(),
            0,
        ),
        // Malformed heads.
        (Flood::Resets, |n| get_with(2 * n + 1, &[("connection", "x")]), 0),
        (
            Flood::Resets,
            |n| frame(HEADERS, 5 | PRIORITY, 2 * n + 1, [0, 0, 0, 0, 0]),
            0,
        ),
        // Streams above the limit of concurrent streams, after the first 128, which are accepted.
        (Flood::Resets, |n| get(2 * n + 1), 128),
        (Flood::Pings, |_| frame(PING, 0, 0, [0; 8]), 0),
        // The SETTINGS frame of the preface counts, too.
        (Flood::Settings, |_| settings(&[(4, 100)]), -1),
        (
            Flood::Priorities,
            |n| frame(PRIORITY_FRAME, 0, n + 1, [0, 0, 0, 0, 0]),
            0,
        ),
        (
            Flood::Priorities,
            |n| frame(PRIORITY_UPDATE, 0, 0, (2 * n + 1).to_be_bytes()),
            0,
        ),
        (Flood::EmptyData, |n| if n == 0 { post(1) } else { data(1, "") }, 1),
        (
            Flood::EmptyData,
            |n| {
                if n == 0 {
                    post(1)
                } else {
                    frame(DATA, PADDED, 1, [3, 0, 0, 0])
                }
            },
            1,
        ),
        (Flood::WindowUpdates, |_| window(0, 1), 0),
        (
            Flood::Stale,
            |n| {
                if n == 0 {
                    [get(1), get(3), rst(1, 8)].concat()
                } else {
                    window(1, 1)
                }
            },
            1,
        ),
        (
            Flood::Stale,
            |n| {
                if n == 0 {
                    [get(1), window(1, 0)].concat()
                } else {
                    data(1, "x")
                }
            },
            1,
        ),
        (Flood::Unknown, |_| frame(0x77, 0, 0, "what"), 0),
    ];
    for &(flood, frames, additional) in rows {
        let mut attack = Attack::new();
        let expected = flood.burst().saturating_add_signed(additional);
        assert_eq!(
            attack.count(frames),
            (expected, Some(ConnectionError::Flood(flood))),
            "{flood:?}"
        );
        assert!(
            attack.out.ends_with(&[0, 0, 0, ErrorCode::EnhanceYourCalm as u8]),
            "{flood:?}"
        );
        assert!(attack.connection.is_closed());
        // The row that leaves 128 streams open is tested with its burst only.
        if flood == Flood::Resets && additional > 0 {
            continue;
        }
        // At the refill rate, the same frames are accepted beyond the burst.
        let mut slow = Attack::new();
        for round in 0..flood.burst() * 3 {
            slow.now += 1000 / u64::from(flood.per_second()) + 1;
            assert_eq!(slow.send(&frames(round)), None, "{flood:?} {round}");
        }
    }
}

/// Sent DATA frames pay for the WINDOW_UPDATE frames that they cause.
#[test]
fn window_updates_are_free_while_data_flows() {
    let mut attack = Attack::new();
    assert_eq!(attack.send(&get(1)), None);
    let (connection, out) = (&mut attack.connection, &mut attack.out);
    // `Attack::send` discards events and thus the stream ID, so the response is sent to a second request.
    let bytes = get(3);
    let received = connection.receive(&Limits::default(), 1_000_000, &bytes, &mut attack.head, out);
    let ConnectionEvent::Request { stream, .. } = received.event else {
        panic!("{received:?}")
    };
    assert_eq!(
        connection.respond(stream, rocknet_proto::Status::OK, None, [], false, out),
        Ok(())
    );
    assert_eq!(connection.queue_body(stream, u64::MAX / 2, false, out), Ok(()));
    for round in 0..5000 {
        let grant = attack
            .connection
            .next_data(1000, &mut attack.out)
            .expect("windows are open");
        assert_eq!(grant.length, 1000);
        attack.out.clear();
        assert_eq!(
            attack.send(&[window(0, 1000), window(3, 1000)].concat()),
            None,
            "{round}"
        );
    }
}

/// Starts a practically endless response for a client whose streams have windows of `initial_window` bytes.
fn endless(attack: &mut Attack, initial_window: u32) -> StreamId {
    assert_eq!(attack.send(&settings(&[(4, initial_window)])), None);
    let bytes = get(1);
    let (connection, out) = (&mut attack.connection, &mut attack.out);
    let received = connection.receive(&Limits::default(), attack.now, &bytes, &mut attack.head, out);
    let ConnectionEvent::Request { stream, .. } = received.event else {
        panic!("{received:?}")
    };
    let ok = rocknet_proto::Status::OK;
    assert_eq!(connection.respond(stream, ok, None, [], false, out), Ok(()));
    assert_eq!(connection.queue_body(stream, u64::MAX / 2, false, out), Ok(()));
    stream
}

/// Sends all data that the windows permit; returns the payload sizes of the frames.
fn sent(attack: &mut Attack) -> Vec<u64> {
    std::iter::from_fn(|| attack.connection.next_data(u64::MAX, &mut attack.out))
        .map(|grant| grant.length)
        .collect()
}

/// A client opens its windows by one or two bytes at a time. The first small frames are sent, and then data waits until
/// the window has a useful size. Sent data pays for some of the WINDOW_UPDATE frames, and the remaining WINDOW_UPDATE
/// frames end the connection.
#[test]
fn tiny_windows_end_the_connection() {
    // Columns: windows that the client opens in tiny steps, initial window of a stream in bytes, frames of a round, and
    // maximum number of DATA frames below 512 bytes. A connection may send 64 frames that a window has cut below a
    // useful size, and one more for each larger frame. The maxima leave room for a few more.
    for (what, initial, update, most) in [
        // After the 64 small frames, one frame per 16 bytes is sent until the budget of window updates is spent.
        ("the stream's", 1, window(1, 1), 64 + 1_024 / 16 + 8),
        ("the stream's, which was large", 65_000, window(1, 1), 80),
        ("the connection's", 1 << 20, window(0, 2), 80),
        // DATA frames of 20 bytes are useful where windows are small (at least 16 bytes), but too small to pay for
        // updates (at least 32 bytes).
        ("both", 1, [window(1, 20), window(0, 20)].concat(), 1_024),
    ] {
        let mut attack = Attack::new();
        endless(&mut attack, initial);
        let first = sent(&mut attack);
        if initial == 1 {
            assert_eq!(first, [1], "{what}: a window of one byte permits one byte");
        }
        let mut small = 0;
        let ended = (0..20_000).find_map(|_| {
            let error = attack.send(&update);
            let sizes = sent(&mut attack);
            small += sizes.iter().filter(|&&size| size < 512).count();
            error
        });
        assert_eq!(ended, Some(ConnectionError::Flood(Flood::WindowUpdates)), "{what}");
        assert!(small <= most, "{what}: {small} small frames");
        assert!(attack.out.ends_with(&[0, 0, 0, ErrorCode::EnhanceYourCalm as u8]));
    }
}

/// Clients with little memory have small windows, and may open a window only after using it up.
#[test]
fn small_windows_are_served_without_limit() {
    for size in [32, 100, 256, 512, 1000, 1500, 5000] {
        // The client opens its windows by their whole size, or by half of it.
        for part in [1, 2] {
            let mut attack = Attack::new();
            endless(&mut attack, size);
            let mut total: u64 = sent(&mut attack).iter().sum();
            assert_eq!(total, u64::from(size));
            for round in 0..5_000 {
                let grant = size / part;
                assert_eq!(
                    attack.send(&[window(1, grant), window(0, grant)].concat()),
                    None,
                    "{size} {round}"
                );
                let sizes = sent(&mut attack);
                assert!(!sizes.is_empty() || part > 1, "{size} {round}");
                total += sizes.iter().sum::<u64>();
                // Frames below 32 bytes do not pay for updates, so the client must keep to the refill rate.
                attack.now += if grant < 32 { 50 } else { 0 };
            }
            // In halves, the client permits 2,500 times the size. At least half of that must have been sent.
            assert!(total >= u64::from(size) * 2_500 / 2, "{size}: {total}");
        }
    }
}

/// A client may open each window only after using it up. The rest of a window is then small where the other window has
/// cut a frame, and must not wait for more.
#[test]
fn the_rest_of_a_window_is_sent_although_it_is_small() {
    for size in [20, 32, 100, 300, 500, 700, 5000] {
        let mut attack = Attack::new();
        endless(&mut attack, size);
        let (mut stream_window, mut connection_window) = (u64::from(size), 65_535);
        for round in 0..5_000 {
            let sizes = sent(&mut attack);
            let total: u64 = sizes.iter().sum();
            (stream_window, connection_window) = (stream_window - total, connection_window - total);
            let mut updates = Vec::new();
            if stream_window == 0 {
                updates.extend(window(1, size));
                stream_window = u64::from(size);
            }
            if connection_window == 0 {
                updates.extend(window(0, 65_535));
                connection_window = 65_535;
            }
            let rest = (stream_window, connection_window);
            assert!(!updates.is_empty(), "{size} {round}: {rest:?} bytes were not sent");
            assert_eq!(attack.send(&updates), None, "{size} {round}");
            attack.now += if size < 32 { 50 } else { 0 };
        }
    }
}

/// The end of a body is sent even if it is small and the budget of small frames is spent.
#[test]
fn the_end_of_a_body_needs_no_large_window() {
    let mut attack = Attack::new();
    let stream = endless(&mut attack, 1);
    for _ in 0..150 {
        sent(&mut attack);
        assert_eq!(attack.send(&window(1, 1)), None);
    }
    assert_eq!(sent(&mut attack), [0; 0], "a small frame waits");
    assert_eq!(attack.connection.send_capacity(stream, 100_000), 0);
    assert_eq!(
        attack.connection.send_capacity(stream, 7),
        7,
        "80 of the 87 bytes after 64 small frames were sent in frames of 16"
    );
    attack.connection.reset(stream, ErrorCode::Cancel, &mut attack.out);
    let bytes = get(3);
    let (connection, out) = (&mut attack.connection, &mut attack.out);
    let received = connection.receive(&Limits::default(), attack.now, &bytes, &mut attack.head, out);
    let ConnectionEvent::Request { stream, .. } = received.event else {
        panic!("{received:?}")
    };
    let ok = rocknet_proto::Status::OK;
    assert_eq!(connection.respond(stream, ok, None, [], false, out), Ok(()));
    assert_eq!(connection.queue_body(stream, 5, true, out), Ok(()));
    assert_eq!(sent(&mut attack), [0; 0]);
    assert!(!attack.connection.may_send() && attack.connection.queued(stream) > 0);
    assert_eq!(attack.send(&window(3, 4)), None);
    assert_eq!(sent(&mut attack), [5]);
}

/// A field block has at most 16 CONTINUATION frames, even if they are empty, and at most 64 KiB.
#[test]
fn field_blocks_are_limited() {
    let calm = [0, 0, 0, ErrorCode::EnhanceYourCalm as u8];
    for piece in [0, 1, 4000] {
        let mut attack = Attack::new();
        assert_eq!(attack.send(&frame(HEADERS, END_STREAM, 1, "")), None);
        let (count, error) = attack.count(|_| frame(CONTINUATION, 0, 1, vec![0; piece]));
        assert_eq!((count, error), (16, Some(ConnectionError::BlockTooLarge)), "{piece}");
        assert!(attack.out.ends_with(&calm));
    }
    let mut attack = Attack::new();
    assert_eq!(attack.send(&frame(HEADERS, END_STREAM, 1, "")), None);
    let (count, error) = attack.count(|_| frame(CONTINUATION, 0, 1, vec![0; 16_384]));
    assert_eq!((count, error), (4, Some(ConnectionError::BlockTooLarge)));
}

/// A configured limit of heads above 64 KiB applies to blocks, too.
#[test]
fn blocks_of_large_permitted_heads_are_read() {
    let value = "v".repeat(200_000);
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "a"),
        (":path", "/"),
        ("x", &*value),
    ];
    let block = block(&fields);
    let mut bytes = frame(HEADERS, END_STREAM, 1, "");
    let (pieces, last) = block.split_at(block.len() - 1);
    for piece in pieces.chunks(16_384) {
        bytes.extend(frame(CONTINUATION, 0, 1, piece));
    }
    bytes.extend(frame(CONTINUATION, END_HEADERS, 1, last));
    for (head_size, is_read) in [(256 * 1024, true), (64 * 1024, false)] {
        let mut attack = Attack::new();
        let limits = Limits {
            head_size,
            ..Limits::default()
        };
        let mut at = 0;
        let event = loop {
            let (connection, out) = (&mut attack.connection, &mut attack.out);
            let received = connection.receive(&limits, attack.now, &bytes[at..], &mut attack.head, out);
            at += received.consumed;
            match received.event {
                ConnectionEvent::More if at < bytes.len() => {}
                event => break event,
            }
        };
        assert_eq!(matches!(event, ConnectionEvent::Request { .. }), is_read, "{event:?}");
    }
}

/// A block of one-byte references to a large table entry is decoded in bounded time and memory. A head far above all
/// limits ends the connection.
#[test]
fn indexed_fields_are_not_expanded() {
    let mut attack = Attack::new();
    let mut block = block(GET_FIELDS);
    // A field `n` with a value of 4000 bytes is added to the dynamic table, where it has the index 62.
    block.extend_from_slice(&[0x40, 1, b'n', 0x7f, 0xa1, 0x1e]);
    block.extend_from_slice(&[b'v'; 4000]);
    block.extend_from_slice(&[0x80 | 62; 1000]);
    assert_eq!(attack.send(&frame(HEADERS, 5, 1, &block)), None);
    assert!(
        attack.head.bytes().len() <= rocknet_proto::limits::HEAD_SIZE,
        "{}",
        attack.head.bytes().len()
    );
    let more = vec![0x80 | 62; 3000];
    let error = attack.send(&frame(HEADERS, 5, 3, &more));
    assert_eq!(error.map(ConnectionError::code), Some(ErrorCode::EnhanceYourCalm));
}

/// The connection reports the queued response bytes of each stream, and whether open windows admit any of them. Its
/// caller sets a deadline for bytes that are held back, because a client that does not read pins their memory
/// (CVE-2019-9517).
#[test]
fn queued_bytes_and_closed_windows_are_reported() {
    let mut attack = Attack::new();
    let mut streams = Vec::new();
    assert_eq!(attack.send(&settings(&[(4, 0)])), None);
    for number in 0..10 {
        let bytes = get(2 * number + 1);
        let (connection, out) = (&mut attack.connection, &mut attack.out);
        let received = connection.receive(&Limits::default(), 0, &bytes, &mut attack.head, out);
        let ConnectionEvent::Request { stream, .. } = received.event else {
            panic!("{received:?}")
        };
        assert_eq!(
            connection.respond(stream, rocknet_proto::Status::OK, None, [], false, out),
            Ok(())
        );
        assert_eq!(connection.queue_body(stream, 1000, true, out), Ok(()));
        streams.push(stream);
    }
    let queued = |attack: &Attack| -> u64 { streams.iter().map(|stream| attack.connection.queued(*stream)).sum() };
    assert_eq!((queued(&attack), attack.connection.may_send()), (10_000, false));
    assert_eq!(attack.connection.next_data(u64::MAX, &mut attack.out), None);
    assert_eq!(attack.send(&window(5, 600)), None);
    assert_eq!((queued(&attack), attack.connection.may_send()), (10_000, true));
    let grant = attack
        .connection
        .next_data(u64::MAX, &mut attack.out)
        .expect("one window is open");
    assert_eq!((grant.stream, grant.length, grant.end), (streams[2], 600, false));
    assert_eq!((queued(&attack), attack.connection.may_send()), (9400, false));
    attack.connection.reset(streams[0], ErrorCode::Cancel, &mut attack.out);
    assert_eq!((queued(&attack), attack.connection.may_send()), (8400, false));
}
