//! Tests of streams that are encoded while they are sent: flushes, sizes of pieces, errors and trailers.
//!
//! `script` returns a stream of the given events, and `coded` encodes it. `text` returns compressible bytes, and
//! `noise` incompressible ones. `drain` returns all pieces of a stream, and its error. `decode` returns the decoded
//! data, and true if the coded data is complete.

use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::super::*;
use super::support::*;
use crate::response::FieldList;

#[test]
fn a_stream_is_flushed_when_its_source_pauses() {
    for coding in CODINGS {
        let lines = [text(40), text(20_000), b"last".to_vec()];
        // At the second pause after a line, nothing is left to flush.
        let pauses = lines
            .iter()
            .flat_map(|line| [piece(line.clone()), Event::Pause, Event::Pause]);
        let pool = Pool::new(1);
        let mut stream = coded(coding, script(pauses), &pool);
        let (mut encoded, mut sent) = (Vec::new(), Vec::new());
        for line in &lines {
            sent.extend_from_slice(line);
            encoded.extend_from_slice(&block_on(stream.next()).expect("a piece").expect("no error"));
            assert!(
                decode(coding, &encoded) == (sent.clone(), false),
                "{coding:?} after {}",
                sent.len()
            );
        }
        let (rest, error) = drain(&mut stream);
        encoded.extend(rest.concat());
        assert!(
            error.is_none() && decode(coding, &encoded) == (sent, true),
            "{coding:?}"
        );
    }
}

#[test]
fn a_pause_without_new_data_causes_no_flush() {
    let pool = Pool::new(1);
    let events = [Event::Pause, piece("x"), Event::Pause, Event::Pause, Event::Pause];
    let mut stream = coded(Coding::Br, script(events), &pool);
    let poll = |stream: &mut CodedStream| {
        let mut next = stream.next();
        next.as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .map(|piece| piece.map(|piece| piece.is_ok()))
    };
    assert_eq!(poll(&mut stream), Poll::Pending, "no data was received");
    assert_eq!(
        poll(&mut stream),
        Poll::Ready(Some(true)),
        "`x` is flushed at the second pause"
    );
    assert_eq!(
        poll(&mut stream),
        Poll::Pending,
        "no data was received before the third pause"
    );
    assert!(drain(&mut stream).1.is_none());
}

#[test]
fn pieces_without_a_pause_between_them_are_not_flushed_one_by_one() {
    for coding in CODINGS {
        let pool = Pool::new(1);
        let mut stream = coded(coding, script((0..1000).map(|_| piece(text(50)))), &pool);
        let (pieces, _) = drain(&mut stream);
        let encoded = pieces.concat();
        assert_eq!(decode(coding, &encoded), (text(50).repeat(1000), true));
        // A flush for each source piece would return 1000 pieces, and each flush adds bytes.
        assert!(
            pieces.len() <= 3 && encoded.len() < 2000,
            "{coding:?}: {} in {}",
            encoded.len(),
            pieces.len()
        );
    }
}

#[test]
fn a_large_piece_is_encoded_in_batches() {
    for coding in CODINGS {
        let (pool, plain) = (Pool::new(1), noise(3_000_000));
        let mut stream = coded(coding, script([piece(plain.clone())]), &pool);
        let (pieces, _) = drain(&mut stream);
        // A batch has at most 64 KiB of input. An encoder may keep some batches before it returns output.
        let longest = pieces.iter().map(Bytes::len).max();
        assert!(longest < Some(256 * 1024), "{coding:?}: {longest:?}");
        assert!(decode(coding, &pieces.concat()) == (plain, true), "{coding:?}");
    }
}

#[test]
fn an_error_follows_the_data_before_it() {
    for coding in CODINGS {
        let pool = Pool::new(1);
        let events = [piece(text(100)), piece(text(30_000)), Event::Error, piece("never")];
        let mut stream = coded(coding, script(events), &pool);
        let (pieces, error) = drain(&mut stream);
        let plain = [text(100), text(30_000)].concat();
        assert!(decode(coding, &pieces.concat()) == (plain, false), "{coding:?}");
        assert_eq!(
            error.map(|error| error.to_string()).as_deref(),
            Some("the source broke")
        );
        assert!(block_on(stream.next()).is_none(), "nothing follows an error");
    }
}

#[test]
fn a_source_of_another_length_than_announced_ends_with_an_error() {
    let pool = Pool::new(1);
    // Announced length of a source of 5,000 bytes, and true if the stream ends with an error.
    for (length, fails) in [(5000, false), (5001, true), (4999, true)] {
        let source = Script {
            length: Some(length),
            ..script([piece(text(5000))])
        };
        let (_, error) = drain(&mut coded(Coding::Gzip, source, &pool));
        assert_eq!(error.is_some(), fails, "{length}");
    }
}

#[test]
fn trailers_are_passed_on_without_digests() {
    let trailers = |fields: &[(&str, &str)]| {
        let mut trailers = FieldList::default();
        fields.iter().for_each(|(name, value)| trailers.add(name, value));
        Some(trailers)
    };
    let pool = Pool::new(1);
    // Trailers of the source, and those of the coded stream.
    let rows = [
        (
            trailers(&[("Server-Timing", "a"), ("Repr-Digest", "b")]),
            trailers(&[("Server-Timing", "a")]),
        ),
        (trailers(&[("content-digest", "b")]), None),
        (None, None),
    ];
    for (given, expected) in rows {
        let source = Script {
            trailers: given,
            ..script([piece(text(2000)), Event::Pause])
        };
        let mut stream = coded(Coding::Zstd, source, &pool);
        drain(&mut stream);
        assert_eq!(stream.trailers(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_split_into_pieces_decodes_to_the_same_content(
        // Length of each piece, true if it is compressible text, and true if the source pauses after it.
        pieces in proptest::collection::vec((0usize..90_000, any::<bool>(), any::<bool>()), 0..8),
    ) {
        let pool = Pool::new(1);
        for coding in CODINGS {
            let (mut plain, mut events) = (Vec::new(), Vec::new());
            for &(length, is_text, pauses) in &pieces {
                let content = if is_text { text(length) } else { noise(length) };
                plain.extend_from_slice(&content);
                events.push(piece(content));
                events.extend(pauses.then_some(Event::Pause));
            }
            let source = Script { length: Some(plain.len() as u64), ..script(events) };
            let (encoded, error) = drain(&mut coded(coding, source, &pool));
            prop_assert!(error.is_none());
            prop_assert!(encoded.iter().all(|piece| !piece.is_empty()), "an empty piece would end a chunked body");
            prop_assert!(decode(coding, &encoded.concat()) == (plain, true), "{coding:?}");
        }
    }
}
