//! Serves GET requests over HTTP/2 in memory, so that an instruction counter measures only the protocol engine.
//!
//! Build with `--profile quick`, run `valgrind --tool=callgrind target/quick/examples/h2_count 2048`, and run it again
//! with 1024: the difference is the cost of 1024 requests. The first argument is the number of requests, rounded up to
//! a multiple of 32. The second argument selects the client to imitate: `load` (the default) sends the fields of
//! h2load, and `browser` sends thirteen fields, which are all indexed except the path.

use std::hint::black_box;

use rocknet_proto::h2::{BodyDelivery, Config, ConnectionEvent, DecodedHead, PREFACE, PreparedHead, ServerConnection};
use rocknet_proto::{Limits, Status};

/// Number of requests that arrive together, as from a client with this number of concurrent streams.
const STREAMS: usize = 32;

/// Response body.
const CONTENT: &[u8; 13] = b"Hello, world!";
/// The path `/about` in the Huffman code of HPACK, as browsers send it.
const PATH: [u8; 5] = [0x60, 0x71, 0x9e, 0xd4, 0xff];

/// Value of Date in every response.
const DATE: &[u8; 29] = b"Sat, 21 Nov 2026 16:00:00 GMT";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let requests: usize = arguments.next().map_or(Ok(1000), |count| count.parse())?;
    let is_browser = arguments.next().is_some_and(|kind| kind == "browser");
    let fields = [
        (b"server".as_slice(), b"RockNet".as_slice()),
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"etag", b"\"18a2b3c4d5e6f7-d\""),
        (b"last-modified", b"Sat, 21 Nov 2026 15:00:00 GMT"),
        (b"accept-ranges", b"bytes"),
        (b"x-content-type-options", b"nosniff"),
    ];
    let prepared = PreparedHead::new(Status::OK, Some(CONTENT.len() as u64), fields)?;
    let (limits, mut head, mut out) = (Limits::default(), DecodedHead::default(), Vec::new());
    let mut connection = ServerConnection::new(&Config::default());
    connection.write_preface(&limits, &mut out);
    let mut input = PREFACE.to_vec();
    // SETTINGS and WINDOW_UPDATE that open the windows to 2^30 - 1 bytes, about half of their maximum, as h2load does.
    input.extend_from_slice(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x3f, 0xff, 0xff, 0xff]);
    input.extend_from_slice(&[0, 0, 4, 8, 0, 0, 0, 0, 0, 0x3f, 0xff, 0, 0]);
    let (mut stream, mut responses) = (1u32, 0);
    while responses < requests {
        for _ in 0..STREAMS {
            request(stream, is_browser, &mut input);
            stream += 2;
        }
        let mut at = 0;
        loop {
            // The time in milliseconds is always 0: the requests exhaust no counter that recovers with time.
            let received = connection.receive(&limits, 0, &input[at..], &mut head, &mut out);
            at += received.consumed;
            match received.event {
                ConnectionEvent::More => break,
                ConnectionEvent::Request { stream, .. } => {
                    black_box(head.request());
                    let sending =
                        connection.respond_prepared(stream, &prepared, DATE, CONTENT.len() as u64, &mut out)?;
                    assert_eq!(sending, BodyDelivery::Now);
                    out.extend_from_slice(CONTENT);
                    responses += 1;
                }
                other => return Err(format!("unexpected event: {other:?}").into()),
            }
        }
        assert_eq!(at, input.len());
        black_box(&out);
        out.clear();
        input.clear();
    }
    println!("{responses} responses sent");
    Ok(())
}

/// Appends the HEADERS frame of a request, with the fields of a browser or else of h2load. The first request adds its
/// fields to the dynamic table; later requests refer to these entries.
fn request(stream: u32, is_browser: bool, input: &mut Vec<u8>) {
    /// Fields of a browser in addition to the method, scheme and path. h2load sends the first two.
    const FIELDS: [(&str, &str); 10] = [
        (":authority", "example.com"),
        (
            "user-agent",
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        ),
        (
            "accept",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        ),
        ("accept-language", "en-US,en;q=0.5"),
        ("accept-encoding", "gzip, deflate, br, zstd"),
        ("upgrade-insecure-requests", "1"),
        ("sec-fetch-dest", "document"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-site", "none"),
        ("cookie", "session=0123456789abcdef0123456789abcdef"),
    ];
    let count = if is_browser { FIELDS.len() } else { 2 };
    // `:method: GET` and `:scheme: http` of the static table.
    let mut block = vec![0x82, 0x86];
    if is_browser {
        // `:path` as a literal that is not added to the dynamic table.
        block.extend_from_slice(&[0x04, 0x80 | PATH.len() as u8]);
        block.extend_from_slice(&PATH);
    } else {
        // `:path: /` of the static table.
        block.push(0x84);
    }
    for (index, (name, value)) in FIELDS[..count].iter().enumerate() {
        if stream == 1 {
            // 0x40 is a literal field with a literal name that is added to the dynamic table.
            block.extend_from_slice(&[0x40, name.len() as u8]);
            block.extend_from_slice(name.as_bytes());
            block.push(value.len() as u8);
            block.extend_from_slice(value.as_bytes());
        } else {
            // The dynamic table follows the 61 entries of the static table, with the latest entry first.
            block.push(0x80 | (61 + count - index) as u8);
        }
    }
    // Type 1 is HEADERS; the flags are END_STREAM and END_HEADERS.
    input.extend_from_slice(&[0, (block.len() >> 8) as u8, block.len() as u8, 1, 5]);
    input.extend_from_slice(&stream.to_be_bytes());
    input.extend_from_slice(&block);
}
