//! Writes the events of connections as lines of text, for tests and fuzz targets. The targets check that the lines do
//! not depend on how the bytes are split.
//!
//! The module is not part of the public interface; its names and lines change without notice.

mod cgi;
mod fastcgi;
mod field_collector;
mod h1;
mod h2;
mod h3;
mod hpack;
mod qpack;

pub use field_collector::OwnedField;
pub use h1::{ResponseTiming, client_transcript, server_transcript};
pub use h2::{H2ResponseTiming, h2_transcript};
pub use hpack::{Hpack, hpack};
pub use qpack::{Qpack, QpackSection};

pub use crate::qpack::QpackError;

use crate::h2::{Config, PREFACE};
use crate::limits::Limits;

/// Limits so small that a fuzzer reaches them.
const SMALL: Limits = Limits {
    head_size: 256,
    fields: 8,
    target_size: 64,
    trailer_size: 64,
    chunk_extension: 32,
    // A fuzzer exceeds this limit without sending as much: it declares a longer body in Content-Length.
    body_size: 1 << 20,
};

/// Parses arbitrary bytes as requests; checks that every split yields the same events.
pub fn h1_request(data: &[u8]) {
    for limits in [Limits::default(), SMALL] {
        for timing in [ResponseTiming::AfterBody, ResponseTiming::AfterHead] {
            // `None`: the site sets no body limit of its own.
            same_in_all_splits(data, |pieces| server_transcript(pieces, &limits, None, timing));
        }
    }
}

/// Parses arbitrary bytes as a chunked request body.
pub fn h1_body(data: &[u8]) {
    let mut bytes = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    bytes.extend_from_slice(data);
    for limits in [Limits::default(), SMALL] {
        same_in_all_splits(&bytes, |pieces| {
            // The site limits the body to 4,096 bytes.
            server_transcript(pieces, &limits, Some(4096), ResponseTiming::AfterBody)
        });
    }
}

/// Parses arbitrary bytes as responses to the three methods whose responses have different framing.
pub fn h1_response(data: &[u8]) {
    for method in ["GET", "HEAD", "CONNECT"] {
        for limits in [Limits::default(), SMALL] {
            // `None`: the request has no Upgrade field.
            same_in_all_splits(data, |pieces| client_transcript(pieces, &limits, method, None));
        }
    }
    // Bytes after 101 belong to another protocol and are not read.
    same_in_all_splits(data, |pieces| {
        client_transcript(pieces, &Limits::default(), "GET", Some("websocket"))
    });
}

/// Parses arbitrary bytes as the frames of a client after a valid preface, and as the frames of an upstream, which the
/// response validator reads. Checks that every split yields the same events and frames.
pub fn h2_frames(data: &[u8]) {
    let mut bytes = PREFACE.to_vec();
    // An empty SETTINGS frame ends the preface.
    bytes.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(data);
    h2_in_all_configurations(&bytes);
    same_in_all_splits(data, h2::validated);
}

/// Turns arbitrary bytes into mostly valid frames and parses them like [`h2_frames`].
pub fn h2_connection(data: &[u8]) {
    let frames = h2::frames_from_bytes(data);
    let mut bytes = PREFACE.to_vec();
    // An empty SETTINGS frame ends the preface.
    bytes.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(&frames);
    h2_in_all_configurations(&bytes);
    same_in_all_splits(&frames, h2::validated);
}

/// Parses the bytes with default and with small limits, and with every timing of responses.
fn h2_in_all_configurations(bytes: &[u8]) {
    // `ServerConnection::new` raises windows of 0 bytes to the minimum of 65,535 bytes.
    let small = Config {
        streams: 3,
        stream_window: 0,
        connection_window: 0,
        connect_protocol: true,
    };
    let (default_limits, default_config) = (Limits::default(), Config::default());
    for (limits, config, timing) in [
        (default_limits, default_config, H2ResponseTiming::AfterHead),
        (default_limits, default_config, H2ResponseTiming::AfterBody),
        (SMALL, small, H2ResponseTiming::AfterBody),
        (SMALL, small, H2ResponseTiming::Never),
    ] {
        same_in_all_splits(bytes, |pieces| h2_transcript(pieces, &limits, &config, timing));
    }
}

/// Parses arbitrary bytes as a request stream of HTTP/3; checks that every split yields the same events.
pub fn h3_request(data: &[u8]) {
    for limits in [Limits::default(), SMALL] {
        same_in_all_splits(data, |pieces| h3::request(pieces, &limits));
    }
}

/// Parses arbitrary bytes as a unidirectional stream of HTTP/3: control frames or instructions of QPACK.
pub fn h3_unidirectional(data: &[u8]) {
    same_in_all_splits(data, h3::unidirectional);
}

/// Parses arbitrary bytes as instructions and field sections of QPACK.
pub fn qpack(data: &[u8]) {
    qpack::messages(data);
}

/// Parses arbitrary bytes as the records of a FastCGI application; checks that every split yields the same output and
/// end.
pub fn fastcgi(data: &[u8]) {
    same_in_all_splits(data, fastcgi::transcript);
}

/// Parses arbitrary bytes as the response of a CGI program; checks that every split yields the same head, and that the
/// head obeys its limits.
pub fn cgi_head(data: &[u8]) {
    same_in_all_splits(data, cgi::head);
}

/// Encodes variables of arbitrary bytes for SCGI; checks that each is refused or is unchanged after decoding.
pub fn scgi(data: &[u8]) {
    cgi::scgi(data);
}

/// Encodes variables of arbitrary bytes for uwsgi; checks that each is refused or is unchanged after decoding.
pub fn uwsgi(data: &[u8]) {
    cgi::uwsgi(data);
}

/// Parses arbitrary bytes as a PROXY protocol header; checks that every split yields the same result, and that the
/// parser never requests more bytes than a header can have.
pub fn proxy_protocol(data: &[u8]) {
    use crate::proxy_protocol::{MAX_V2_PAYLOAD, ParseProgress, parse};
    // Passes at most `step` further bytes at a time. Returns the result, or `None` if the header is incomplete, and the
    // number of bytes passed.
    let parse_in_steps = |step: usize| {
        let mut available = 0;
        loop {
            match parse(&data[..available]) {
                Ok(ParseProgress::Complete(header)) => return (Some(Ok(header)), available),
                // Depending on the split, the error may be found after a different number of bytes, so the number is
                // left out.
                Err(error) => return (Some(Err(error)), 0),
                Ok(ParseProgress::More { wanted }) => {
                    assert!(wanted > 0 && wanted <= MAX_V2_PAYLOAD);
                    if available == data.len() {
                        return (None, available);
                    }
                    available += wanted.min(step).min(data.len() - available);
                }
            }
        }
    };
    let whole = parse_in_steps(usize::MAX);
    for step in [1, 2, 3, 7] {
        assert_eq!(parse_in_steps(step), whole, "in steps of {step}");
    }
}

/// Checks that `run` returns the same lines for the whole data, for single bytes, and for pieces of 1 to 13 bytes whose
/// sizes depend on the data. These three splits stand for all others.
fn same_in_all_splits(data: &[u8], run: impl Fn(&[&[u8]]) -> Vec<String>) {
    let whole = run(&[data]);
    let single: Vec<&[u8]> = data.chunks(1).collect();
    assert_eq!(whole, run(&single), "byte by byte");
    let mut uneven = Vec::new();
    let mut rest = data;
    while let Some(&first) = rest.first() {
        let (piece, tail) = rest.split_at(rest.len().min(usize::from(first % 13) + 1));
        uneven.push(piece);
        rest = tail;
    }
    assert_eq!(whole, run(&uneven), "in uneven pieces");
}
