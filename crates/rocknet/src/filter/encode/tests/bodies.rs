//! Tests of all kinds of bodies: where and when each is encoded, and which remain uncoded.
//!
//! The constants `TYPE`, `VARY` and `BR` are header fields: the type of an HTML page, `Vary: Accept-Encoding` and
//! `Content-Encoding: br`. `text` returns compressible bytes, and `noise` incompressible ones. `conditions` returns
//! the conditions of a request with this `Accept-Encoding`, `filtered` applies the filter, and `content` returns the
//! bytes of a body. `script` returns a stream of the given pieces, and `coded` encodes it. `drain` returns all pieces
//! of a stream, and its error. `decode` returns the decoded data, and true if the coded data is complete.

use std::io::Write;

use super::super::*;
use super::support::*;
use crate::open_file::OpenFile;
use crate::response::{FilePart, Part};

#[test]
fn a_coded_body_is_used_only_if_it_is_smaller() {
    // The first body is encoded on the event loop, the second one in the pool.
    for length in [2000, MAX_INLINE + 1] {
        let plain = noise(length);
        let response = filtered(
            &conditions("br"),
            response(200, &[TYPE, ("ETag", "\"a\"")], plain.clone()),
        );
        check_fields(&response, &[TYPE, ("ETag", "\"a\""), VARY]);
        assert!(content(response.body) == plain, "{length}");
    }
}

#[test]
fn a_body_in_memory_is_encoded_by_size_on_the_event_loop_in_the_pool_or_as_a_stream() {
    // Length of the body, true if a job of the pool encodes it as a whole, and true if the coded body has a length.
    let rows = [
        (MAX_INLINE, false, true),
        (MAX_INLINE + 1, true, true),
        (MAX_WHOLE, true, true),
        (MAX_WHOLE + 1, false, false),
    ];
    for (length, is_in_pool, has_length) in rows {
        for coding in CODINGS {
            let (pool, plain) = (Pool::new(1), text(length));
            let mut response = response(200, &[TYPE], plain.clone());
            let pending = apply(&conditions(coding.name()), &pool, &Encoders::default(), &mut response);
            assert_eq!(pending.is_some(), is_in_pool, "{length}");
            if let Some(pending) = pending {
                check_fields(&response, &[TYPE, VARY]);
                block_on(pending.finish(&mut response));
            }
            check_fields(&response, &[TYPE, VARY, ("Content-Encoding", coding.name())]);
            assert_eq!(response.body.length().is_some(), has_length, "{length}");
            assert!(
                decode(coding, &content(response.body)) == (plain, true),
                "{length} {coding:?}"
            );
        }
    }
}

#[test]
fn a_full_pool_leaves_bodies_in_memory_uncoded_and_codes_streams() {
    // A pool without threads rejects every job, like a pool whose queue is full.
    let pool = Pool::new(0);
    let mut medium = response(200, &[TYPE], text(100_000));
    let pending = apply(&conditions("br"), &pool, &Encoders::default(), &mut medium).expect("a job");
    block_on(pending.finish(&mut medium));
    check_fields(&medium, &[TYPE, VARY]);
    assert!(content(medium.body) == text(100_000));

    for coding in CODINGS {
        let mut stream = coded(coding, script([piece(text(300_000))]), &pool);
        let (pieces, error) = drain(&mut stream);
        assert!(
            error.is_none() && decode(coding, &pieces.concat()) == (text(300_000), true),
            "{coding:?}"
        );
    }
}

#[test]
fn files_are_encoded_whole_or_not_at_all() {
    let file = || {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&text(300_000)).expect("room");
        Arc::new(OpenFile::new(file, 300_000))
    };
    let part = |offset| FilePart {
        file: file(),
        offset,
        length: 300_000 - offset,
    };
    let whole = Response {
        body: Body::File(part(0)),
        ..response(200, &[TYPE], "")
    };
    let whole = filtered(&conditions("gzip"), whole);
    check_fields(&whole, &[TYPE, VARY, ("Content-Encoding", "gzip")]);

    // A file whose coding the files handler has chosen, a range, and several ranges remain as they are.
    let negotiated = Response {
        body: Body::File(part(0)),
        ..response(200, &[TYPE, VARY], "")
    };
    let range = Response {
        body: Body::File(part(1)),
        ..response(200, &[TYPE, VARY], "")
    };
    let parts = Response {
        body: Body::Parts(vec![Part::File(part(0))]),
        ..response(200, &[TYPE, VARY], "")
    };
    for response in [negotiated, range, parts] {
        let length = response.body.length();
        let response = filtered(&conditions("gzip"), response);
        check_fields(&response, &[TYPE, VARY]);
        assert_eq!(response.body.length(), length);
    }
}

#[test]
fn streams_beyond_the_memory_limit_of_encoders_are_uncoded() {
    // An encoder of Brotli reserves 2 MiB, so only one fits.
    let (pool, encoders) = (Pool::new(1), Encoders::new(3 * 1024 * 1024));
    let start = || {
        let body = Body::Stream(Box::new(script([piece(text(5000))])));
        let mut response = response(200, &[TYPE], body);
        assert!(apply(&conditions("br"), &pool, &encoders, &mut response).is_none());
        response
    };
    let (first, second) = (start(), start());
    check_fields(&first, &[TYPE, VARY, BR]);
    check_fields(&second, &[TYPE, VARY]);
    assert!(content(second.body) == text(5000));
    assert!(decode(Coding::Br, &content(first.body)) == (text(5000), true));
    // The first stream has ended, so its memory is free again.
    check_fields(&start(), &[TYPE, VARY, BR]);
}
