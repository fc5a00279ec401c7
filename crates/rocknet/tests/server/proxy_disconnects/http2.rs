//! Disconnects of upstreams and HTTP/2 clients at any byte, where a stream ends with or without its connection.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::{OpenConnections, RESPONSES, endless, proxied, reset_on_close};
use crate::support::DEADLINE;
use crate::support::http2::Http2;
use crate::support::upstream::{Next, Upstream, write_to};
use crate::wire::{self, Frame, RST_STREAM};

#[test]
fn a_response_that_ends_early_is_an_error_or_a_reset() {
    for sent in RESPONSES {
        for is_abrupt in [false, true] {
            let upstream = Upstream::start(move |incoming, stream| {
                let number = incoming.line.split(['/', ' ']).nth(2);
                let length: usize = number.and_then(|number| number.parse().ok()).expect("a number");
                write_to(stream, &sent[..length]);
                if is_abrupt {
                    reset_on_close(stream);
                }
                Next::Close
            });
            let server = proxied(&upstream);
            // The connection must be kept when its streams fail.
            let mut client = Http2::to(server.address());
            for length in 0..=sent.len() {
                let (response, _) = client.start_request(client.request("GET", &format!("/{length}")), true);
                let is_right = match client.response(response) {
                    Ok(response) if response.status == 200 => {
                        response.content == b"abcde" && (length == sent.len() || is_abrupt)
                    }
                    Ok(response) => response.status == 502 && (length < sent.len() || is_abrupt),
                    Err(error) => error.is_reset() && (length < sent.len() || is_abrupt),
                };
                assert!(is_right, "{length} of {sent:?}, reset: {is_abrupt}");
            }
        }
    }
}

/// The way in which a client disconnects.
#[derive(Clone, Copy, Debug)]
enum Disconnect {
    /// Closes the connection.
    Close,
    /// Resets the connection.
    Reset,
    /// Resets the stream and keeps the connection.
    Stream,
}

const DISCONNECTS: [Disconnect; 3] = [Disconnect::Close, Disconnect::Reset, Disconnect::Stream];

/// Disconnects a client. Returns the connection if it remains.
fn disconnect(mut client: TcpStream, how: Disconnect) -> Option<TcpStream> {
    match how {
        Disconnect::Close => None,
        Disconnect::Reset => {
            reset_on_close(&client);
            None
        }
        Disconnect::Stream => {
            client.write_all(&wire::rst(1)).expect("to be sent");
            Some(client)
        }
    }
}

/// Reads until each stream has ended or was reset, and returns all frames.
fn frames_until_ends(client: &mut TcpStream, streams: &[u32]) -> Vec<Frame> {
    client.set_read_timeout(Some(DEADLINE)).expect("an option");
    let (mut received, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let (frames, _) = wire::frames(&received);
        let is_over = |number: &u32| {
            let mut of_stream = frames.iter().filter(|frame| frame.stream == *number);
            of_stream.any(|frame| frame.ends_stream() || frame.kind == RST_STREAM)
        };
        if streams.iter().all(is_over) {
            return frames;
        }
        let read = client.read(&mut piece).expect("more of the responses");
        assert!(read > 0, "the connection was closed: {frames:?}");
        received.extend_from_slice(&piece[..read]);
    }
}

#[test]
fn a_disconnect_at_any_byte_of_a_request_closes_the_upstream_connection() {
    let (beginning, head) = (wire::open_beginning(), wire::post(1, "/x"));
    let content = wire::body_frames(1, b"hello");
    let sent = [&beginning[..], &head, &content].concat();
    // A stream can be reset only after its head and between two frames.
    let frame_ends = [beginning.len() + head.len(), sent.len()];
    for how in DISCONNECTS {
        let open = OpenConnections::default();
        let counted = open.clone();
        // The upstream responds only to requests for `/alive`.
        let upstream = Upstream::raw(move |mut stream: TcpStream| {
            let _counted = counted.count();
            let (mut received, mut piece) = (Vec::new(), [0; 1024]);
            while let Ok(read @ 1..) = stream.read(&mut piece) {
                received.extend_from_slice(&piece[..read]);
                if received.starts_with(b"GET /alive ") && received.ends_with(b"\r\n\r\n") {
                    write_to(&mut stream, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nalive");
                    return;
                }
            }
        });
        let server = proxied(&upstream);
        let mut left = Vec::new();
        for length in 0..=sent.len() {
            if matches!(how, Disconnect::Stream) && !frame_ends.contains(&length) {
                continue;
            }
            let mut client = TcpStream::connect(server.address()).expect("a connection");
            client.write_all(&sent[..length]).expect("to be sent");
            left.push(disconnect(client, how));
        }
        open.wait_for_none(&format!("requests of clients that left by {how:?}"));
        for mut client in left.into_iter().flatten() {
            // The connection still works.
            client.write_all(&wire::get(3, "/alive")).expect("to be sent");
            let frames = frames_until_ends(&mut client, &[3]);
            assert_eq!(wire::body_of(&frames, 3), b"alive", "{frames:?}");
        }
    }
}

#[test]
fn a_disconnect_during_a_response_closes_the_upstream_connection() {
    let (upstream, open) = endless();
    let server = proxied(&upstream);
    let mut left = Vec::new();
    for target in ["/sized", "/open"] {
        for how in DISCONNECTS {
            // The second client never opens its window, so the response is blocked when it disconnects.
            for (beginning, amount) in [(wire::open_beginning(), 1_000_000), (wire::beginning(&[]), 60_000)] {
                let mut client = TcpStream::connect(server.address()).expect("a connection");
                client.set_read_timeout(Some(DEADLINE)).expect("an option");
                let bytes = [beginning, wire::get(1, target)].concat();
                client.write_all(&bytes).expect("to be sent");
                client.read_exact(&mut vec![0; amount]).expect("the beginning");
                left.push(disconnect(client, how));
            }
        }
    }
    open.wait_for_none("responses to clients that disconnected");
}

#[test]
fn a_cut_stream_affects_no_other() {
    let upstream = Upstream::start(|incoming, stream| {
        let is_cut = incoming.line.contains("/cut");
        let length = if is_cut { 50 } else { 5 };
        write_to(
            stream,
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nabcde"),
        );
        if is_cut { Next::Close } else { Next::Keep }
    });
    let server = proxied(&upstream);
    let mut client = TcpStream::connect(server.address()).expect("a connection");
    let numbers: Vec<u32> = (0..20).map(|number| 2 * number + 1).collect();
    let mut sent = wire::open_beginning();
    for &number in &numbers {
        let path = if number % 4 == 1 { "/cut" } else { "/whole" };
        sent.extend(wire::get(number, path));
    }
    client.write_all(&sent).expect("to be sent");
    let frames = frames_until_ends(&mut client, &numbers);
    for number in numbers {
        let content = wire::body_of(&frames, number);
        match number % 4 == 1 {
            // The received part may have been forwarded, or replaced by an error page.
            true => {
                let mut of_stream = frames.iter().filter(|frame| frame.stream == number);
                let is_reset = of_stream.any(|frame| frame.kind == RST_STREAM);
                assert!(
                    is_reset || content != b"abcde",
                    "stream {number} ended like a complete response"
                );
            }
            false => assert_eq!(content, b"abcde", "{number}"),
        }
    }
}
