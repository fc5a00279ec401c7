//! Floods: frames, streams and instructions that cost the server more than the client are limited.
//!
//! Frame types: 0 DATA, 7 GOAWAY, 0xf0700 PRIORITY_UPDATE; 0x21 is unknown.
//!
//! The third argument of `Peer::receive` is true if the stream ends with these bytes. The fourth is the size of the
//! pieces in which the bytes arrive; with `usize::MAX` they arrive at once. The second argument of
//! `receive_unidirectional` and `unidirectional_reset` is the time. It is 0, before the connection began, so that no
//! frames are forgiven. The last argument of `receive_unidirectional` is true if the stream ends with these bytes.

use rocknet_proto::h3::ConnectionError;

use super::wire::{GET, Peer, frame, headers, post};

/// Repeats an action until the engine closes the connection. Returns the error and the number of repetitions.
fn until_closed(peer: &mut Peer, mut action: impl FnMut(&mut Peer) -> Vec<String>) -> (String, usize) {
    for count in 1..20_000 {
        if let Some(closed) = action(peer).into_iter().find(|event| event.starts_with("Closed")) {
            return (closed, count);
        }
    }
    panic!("no limit");
}

#[test]
fn resets_are_limited_and_forgiven_over_time() {
    let mut peer = Peer::new();
    let (closed, count) = until_closed(&mut peer, |peer| {
        let stream = peer.open();
        peer.receive(stream, &headers(&GET), true, usize::MAX);
        match peer.engine.client_reset(stream, peer.now) {
            Ok(is_pending) => {
                assert!(is_pending);
                Vec::new()
            }
            Err(error) => vec![format!("Closed {error:?}")],
        }
    });
    // The burst is 256 resets.
    assert_eq!((closed.as_str(), count), ("Closed Flood(Resets)", 257));

    let mut peer = Peer::new();
    for _ in 0..2000 {
        // 20 resets a second are normal use.
        peer.now += 50;
        let stream = peer.open();
        peer.receive(stream, &headers(&GET), true, usize::MAX);
        assert_eq!(peer.engine.client_reset(stream, peer.now), Ok(true));
    }
}

#[test]
fn malformed_requests_are_limited_like_resets() {
    let (closed, count) = until_closed(&mut Peer::new(), |peer| peer.request(&headers(&GET[..3]), true));
    assert_eq!((closed.contains("Flood(Resets)"), count), (true, 257));
}

#[test]
fn requests_that_end_early_are_limited_like_resets() {
    let short = headers(&post(&[("content-length", "2")]));
    for bytes in [Vec::new(), [&short[..], &frame(0, b"x")].concat()] {
        let (closed, count) = until_closed(&mut Peer::new(), |peer| peer.request(&bytes, true));
        assert!(closed.contains("Flood(Resets)") && count == 257, "{closed} {count}");
    }
}

#[test]
fn empty_data_and_unknown_frames_are_limited() {
    for (kind, name) in [(0, "EmptyData"), (0x21, "Unknown")] {
        let mut peer = Peer::new();
        let stream = peer.open();
        peer.receive(stream, &headers(&post(&[])), false, usize::MAX);
        let (closed, count) = until_closed(&mut peer, |peer| {
            peer.receive(stream, &frame(kind, b""), false, usize::MAX)
        });
        // The bursts are 64 and 128 frames. The test only requires that there is a limit of this order.
        assert!(closed.contains(name) && count < 300, "{closed} {count}");
    }
}

#[test]
fn unknown_frames_with_each_request_are_normal_use() {
    let mut peer = Peer::new();
    for _ in 0..2000 {
        let stream = peer.open();
        let bytes = [frame(0x21, b"x"), headers(&GET), frame(0x21, b"y")].concat();
        assert_eq!(peer.receive(stream, &bytes, true, usize::MAX).len(), 1);
        peer.engine.end_response(stream);
    }
}

#[test]
fn unidirectional_streams_are_counted_once() {
    // Bytes of each stream; true if it is reset; number of the stream that exceeds the burst of 128.
    let rows: [(&[u8], bool, usize); 4] = [
        (&[0x21], false, 129),
        // The reset is the reply to STOP_SENDING.
        (&[0x21], true, 129),
        // The type has arrived in part.
        (&[0x40], true, 129),
        // No byte has arrived.
        (&[], true, 129),
    ];
    for (bytes, is_reset, expected) in rows {
        // The control stream has the ID 2, so the next unidirectional streams have the IDs 6, 10 and so on.
        let (mut peer, mut stream) = (Peer::new(), 2);
        let (closed, count) = until_closed(&mut peer, |peer| {
            stream += 4;
            let mut result = Ok(());
            if !bytes.is_empty() {
                let received = peer.engine.receive_unidirectional(stream, 0, bytes, false);
                result = received.map(|_| ());
            }
            if is_reset && result.is_ok() {
                result = peer.engine.unidirectional_reset(stream, 0);
            }
            result.map_or_else(|error| vec![format!("Closed {error:?}")], |()| Vec::new())
        });
        assert_eq!(
            (closed.as_str(), count),
            ("Closed Flood(Unknown)", expected),
            "{bytes:?}"
        );
        // The end of the control stream has its own code, even if the budget is exhausted.
        let ended = peer.engine.unidirectional_reset(2, 0);
        assert_eq!(ended, Err(ConnectionError::ClosedCriticalStream), "{bytes:?}");
    }
}

#[test]
fn control_frames_are_limited() {
    for payload in [frame(0xf_0700, b"\0u=1"), frame(0x21, b""), frame(7, b"\0")] {
        let (closed, count) = until_closed(&mut Peer::new(), |peer| {
            match peer.engine.receive_unidirectional(2, 0, &payload, false) {
                Ok(_) => Vec::new(),
                Err(error) => vec![format!("Closed {error:?}")],
            }
        });
        // The bursts are 512 priority frames and 128 other frames. The test only requires a limit of this order.
        assert!(closed.contains("Flood") && count < 600, "{closed} {count}");
    }
}

#[test]
fn instructions_of_qpack_are_limited() {
    let mut peer = Peer::new();
    // Sends the type of the encoder stream and a table capacity of 4096 bytes. Endless insertions follow.
    peer.engine
        .receive_unidirectional(6, 0, &[2, 0x3f, 0xe1, 0x1f], false)
        .expect("an encoder stream");
    let insert = [0x41, b'a', 1, b'b'].repeat(100);
    let (closed, count) = until_closed(&mut peer, |peer| {
        match peer.engine.receive_unidirectional(6, 0, &insert, false) {
            Ok(_) => Vec::new(),
            Err(error) => vec![format!("Closed {error:?}")],
        }
    });
    // The burst is 4096 instructions, and each repetition sends 100, so about 41 repetitions are accepted.
    assert!(closed.contains("QpackInstructions") && count < 60, "{closed} {count}");
    assert!(peer.engine.memory() < 64 * 1024);
}
