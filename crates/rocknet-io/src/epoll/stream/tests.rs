//! Tests with real sockets: resets, idle streams, files between frames, and bytes in flight.

use std::io::Read;
use std::net::{TcpListener, TcpStream};

use super::*;
use crate::runtime::Runtime;

/// Maximum number of events that the runtime reads in one poll. Any value serves in these tests.
const MAX_EVENTS: usize = 8;

#[test]
fn a_stream_that_was_reset_sends_a_reset_to_the_peer() {
    for reset in [true, false] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        Runtime::new(MAX_EVENTS).unwrap().block_on(async {
            let mut stream = EpollStream::new(socket.into()).unwrap();
            if reset {
                stream.reset();
            }
        });
        let seen = peer.read(&mut [0]).map_err(|error| error.kind());
        let expected = if reset {
            Err(io::ErrorKind::ConnectionReset)
        } else {
            Ok(0)
        };
        assert_eq!(seen, expected);
    }
}

/// Checks that a stream is idle at first, and that `is_idle` returns `expected` after `act`. `act` is an action of the
/// peer; it returns the peer if the peer stays open.
fn check_idle(expected: bool, act: impl FnOnce(TcpStream) -> Option<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    let (watched, readable) = (socket.try_clone().unwrap(), !expected);
    Runtime::new(MAX_EVENTS).unwrap().block_on(async {
        let mut stream = EpollStream::new(socket.into()).unwrap();
        stream.wait_for_first_receive();
        assert!(stream.is_idle());
        let _peer = act(peer);
        if readable {
            // Returns once the data or the end has arrived.
            watched.set_nonblocking(false).unwrap();
            let _ = watched.peek(&mut [0]);
        }
        // Delivers the event.
        crate::runtime::drain_events().await;
        assert_eq!(stream.is_idle(), expected);
    });
}

#[test]
fn data_or_the_end_make_a_stream_not_idle() {
    check_idle(true, Some);
    check_idle(false, |mut peer| {
        std::io::Write::write_all(&mut peer, b"x").unwrap();
        Some(peer)
    });
    check_idle(false, |peer| {
        drop(peer);
        None
    });
}

#[test]
fn files_between_frames_are_sent_in_order() {
    let content: Vec<u8> = (0..1 << 20).map(|at| (at % 251) as u8).collect();
    let mut named = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut named, &content).unwrap();
    let file = std::sync::Arc::new(named.reopen().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    let (mut queue, mut expected) = (SendQueue::default(), Vec::new());
    for (at, length) in (0..200).map(|number| (number * 5_000, number * 97)) {
        queue.buffer().extend_from_slice(b"frame");
        queue.push_file(std::sync::Arc::clone(&file), at as u64, length as u64);
        expected.extend_from_slice(b"frame");
        expected.extend_from_slice(&content[at..at + length]);
    }
    queue.buffer().extend_from_slice(b"end");
    expected.extend_from_slice(b"end");
    let (mut received, mut buffer) = (Vec::new(), vec![0; 100_000]);
    // The budget for files is so small that many calls use it up.
    while !queue.is_empty() {
        let before = queue.len();
        let mut budget = 30_000;
        match send_queue(socket.as_fd(), &mut queue, &mut budget) {
            Ok(all_sent) => assert!(all_sent == queue.is_empty() && (all_sent || budget == 0)),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        assert!(
            !rustix::net::sockopt::tcp_cork(&socket).unwrap(),
            "the socket is still corked"
        );
        // Nothing was sent, so the socket is full until the peer reads.
        if queue.len() == before {
            let read = peer.read(&mut buffer).unwrap();
            received.extend_from_slice(&buffer[..read]);
        }
    }
    drop(socket);
    peer.read_to_end(&mut received).unwrap();
    assert!(received == expected, "{} of {} bytes", received.len(), expected.len());
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_in_flight_after_a_reset() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    let bytes = vec![0; 1 << 20];
    while std::io::Write::write(&mut socket, &bytes).is_ok() {}
    assert!(in_flight(socket.as_fd()) > 0, "nothing is in flight");
    // The peer has unread bytes, so closing its socket sends a reset.
    drop(peer);
    socket.set_nonblocking(false).unwrap();
    socket.read(&mut [0]).unwrap_err();
    assert_eq!(in_flight(socket.as_fd()), 0);
}
