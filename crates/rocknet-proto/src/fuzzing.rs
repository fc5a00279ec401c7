//! Conversations as plain lines, for tests and fuzz targets: what a connection makes of bytes, however they are split.
//!
//! Not part of the interface: names and lines here change without notice.

mod cgi;
mod fastcgi;
mod h1;
mod h2;
mod hpack;

pub use h1::{ResponseTiming, client_transcript, server_transcript};
pub use h2::{H2Answering, h2_conversation};
pub use hpack::{Hpack, Pair, hpack};

use crate::h2::{Config, PREFACE};
use crate::limits::Limits;

/// Bounds small enough that a fuzzer meets them.
const SMALL: Limits = Limits {
    head_size: 256,
    fields: 8,
    target_size: 64,
    trailer_size: 64,
    chunk_extension: 32,
    body_size: 1 << 20,
};

/// Any bytes to a server: no panic, and the same events however the bytes come.
pub fn h1_request(data: &[u8]) {
    for limits in [Limits::default(), SMALL] {
        for timing in [ResponseTiming::AfterBody, ResponseTiming::AfterHead] {
            same_in_all_splits(data, |pieces| server_transcript(pieces, &limits, None, timing));
        }
    }
}

/// Any bytes as chunked content.
pub fn h1_body(data: &[u8]) {
    let mut bytes = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    bytes.extend_from_slice(data);
    for limits in [Limits::default(), SMALL] {
        same_in_all_splits(&bytes, |pieces| {
            server_transcript(pieces, &limits, Some(4096), ResponseTiming::AfterBody)
        });
    }
}

/// Any bytes to a client, as the answer to three methods that read it differently.
pub fn h1_response(data: &[u8]) {
    for method in ["GET", "HEAD", "CONNECT"] {
        for limits in [Limits::default(), SMALL] {
            same_in_all_splits(data, |pieces| client_transcript(pieces, &limits, method, None));
        }
    }
    // What follows an answer that agrees to another protocol is not read.
    same_in_all_splits(data, |pieces| {
        client_transcript(pieces, &Limits::default(), "GET", Some("websocket"))
    });
}

/// Any bytes as frames to a server, behind a good beginning: no panic, and the same events and frames in every split.
pub fn h2_frames(data: &[u8]) {
    let mut bytes = PREFACE.to_vec();
    bytes.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(data);
    h2_in_all_ways(&bytes);
    same_in_all_splits(data, h2::judged);
}

/// Any bytes as a program of frames that mostly make sense.
pub fn h2_connection(data: &[u8]) {
    let program = h2::program(data);
    let mut bytes = PREFACE.to_vec();
    bytes.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(&program);
    h2_in_all_ways(&bytes);
    same_in_all_splits(&program, h2::judged);
}

fn h2_in_all_ways(bytes: &[u8]) {
    let small = Config {
        streams: 3,
        stream_window: 0,
        connection_window: 0,
        connect_protocol: true,
    };
    let (plain, all) = (Config::default(), Limits::default());
    for (limits, config, answering) in [
        (all, plain, H2Answering::AtOnce),
        (all, plain, H2Answering::AtEnd),
        (SMALL, small, H2Answering::AtEnd),
        (SMALL, small, H2Answering::Never),
    ] {
        same_in_all_splits(bytes, |pieces| h2_conversation(pieces, &limits, &config, answering));
    }
}

/// Any bytes as what a FastCGI application answers: no panic, and the same answer, complaints and end in every split.
pub fn fastcgi(data: &[u8]) {
    same_in_all_splits(data, fastcgi::transcript);
}

/// Any bytes as the answer of a program or an application: no panic, the same end of its head in every split, and a head
/// that holds what it may.
pub fn cgi_head(data: &[u8]) {
    same_in_all_splits(data, cgi::head);
}

/// Variables made of any bytes, told by SCGI: refused, or read again as they were.
pub fn scgi(data: &[u8]) {
    cgi::scgi(data);
}

/// Variables made of any bytes, told by uwsgi: refused, or read again as they were.
pub fn uwsgi(data: &[u8]) {
    cgi::uwsgi(data);
}

/// Any bytes as the beginning of a connection from a balancer: no panic, the same client however few bytes come at once, and
/// never more asked for than a header may have.
pub fn proxy_protocol(data: &[u8]) {
    use crate::proxy_protocol::{MAX_V2_PAYLOAD, ParseProgress, parse};
    let parse_in_steps = |step: usize| {
        let mut taken = 0;
        loop {
            match parse(&data[..taken]) {
                Ok(ParseProgress::Complete(header)) => return (Some(Ok(header)), taken),
                Err(error) => return (Some(Err(error)), 0),
                Ok(ParseProgress::More { wanted }) => {
                    assert!(wanted > 0 && wanted <= MAX_V2_PAYLOAD);
                    if taken == data.len() {
                        return (None, taken);
                    }
                    taken += wanted.min(step).min(data.len() - taken);
                }
            }
        }
    };
    let whole = parse_in_steps(usize::MAX);
    for step in [1, 2, 3, 7] {
        assert_eq!(parse_in_steps(step), whole, "in steps of {step}");
    }
}

/// Whole, byte by byte, and cut at places that the bytes themselves choose.
fn same_in_all_splits(data: &[u8], run: impl Fn(&[&[u8]]) -> Vec<String>) {
    let whole = run(&[data]);
    let single: Vec<&[u8]> = data.chunks(1).collect();
    assert_eq!(whole, run(&single), "byte by byte");
    let mut uneven = Vec::new();
    let mut rest = data;
    while let Some(&first) = rest.first() {
        let (piece, behind) = rest.split_at(rest.len().min(usize::from(first % 13) + 1));
        uneven.push(piece);
        rest = behind;
    }
    assert_eq!(whole, run(&uneven), "in uneven pieces");
}
