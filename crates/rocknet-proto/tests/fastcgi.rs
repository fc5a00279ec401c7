//! Tests FastCGI: requests have the format of the specification, and every split of the records yields the same
//! response.

use proptest::collection::vec;
use proptest::prelude::*;
use rocknet_proto::fastcgi::{self, EndRequest, Params, RecordError, RecordEvent, ResponseReader};

// Types of records.
const BEGIN: u8 = 1;
const END: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// Returns a record of the type `kind` as an application sends it for request 1, with `padding` bytes after the
/// content.
fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a record's content").to_be_bytes();
    // Version 1, type, request ID 1, length of the content, length of the padding, and a reserved byte.
    let mut bytes = vec![1, kind, 0, 1, length[0], length[1], padding, 0];
    bytes.extend_from_slice(content);
    bytes.extend(std::iter::repeat_n(0xaa, usize::from(padding)));
    bytes
}

/// Returns the record that ends a response, with application status 7 and protocol status 0.
fn end(padding: u8) -> Vec<u8> {
    record(END, &[0, 0, 0, 7, 0, 0, 0, 0], padding)
}

/// Content of the streams of a response, and how it ended.
#[derive(Debug, Default, PartialEq, Eq)]
struct ReadResponse {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    end: Option<EndRequest>,
    error: Option<RecordError>,
}

/// Reads a response that arrives in these pieces. Stops at the first error.
fn read_response<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> ReadResponse {
    let (mut records, mut response) = (ResponseReader::new(), ReadResponse::default());
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() && response.error.is_none() {
            match records.receive(rest) {
                Ok(received) => {
                    match received.event {
                        RecordEvent::Stdout(range) => response.stdout.extend_from_slice(&rest[range]),
                        RecordEvent::Stderr(range) => response.stderr.extend_from_slice(&rest[range]),
                        RecordEvent::End(end) => {
                            assert_eq!(response.end.replace(end), None, "the end is reported once");
                        }
                        RecordEvent::More => {}
                    }
                    rest = &rest[received.consumed..];
                }
                Err(error) => response.error = Some(error),
            }
        }
    }
    assert_eq!(records.is_ended(), response.end.is_some());
    response
}

/// Parses the records of a request and returns their types and contents.
fn read(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut records = Vec::new();
    while let [version, kind, id_high, id_low, high, low, padding, _, rest @ ..] = bytes {
        assert_eq!((*version, *id_high, *id_low), (1, 0, 1));
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        records.push((*kind, rest[..length].to_vec()));
        bytes = &rest[length + usize::from(*padding)..];
    }
    assert!(bytes.is_empty(), "a record is incomplete");
    records
}

/// Parses the name-value pairs of one FCGI_PARAMS record. No pair may continue in the next record, because PHP parses
/// each record on its own.
fn pairs(mut bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pairs = Vec::new();
    while !bytes.is_empty() {
        let mut length = || match bytes {
            [short, rest @ ..] if *short < 0x80 => {
                bytes = rest;
                usize::from(*short)
            }
            [a, b, c, d, rest @ ..] => {
                bytes = rest;
                (u32::from_be_bytes([*a, *b, *c, *d]) & 0x7fff_ffff) as usize
            }
            _ => panic!("a length is incomplete"),
        };
        let (name, value) = (length(), length());
        let (pair, rest) = bytes.split_at(name + value);
        pairs.push((pair[..name].to_vec(), pair[name..].to_vec()));
        bytes = rest;
    }
    pairs
}

/// Returns the FCGI_PARAMS records of these variables.
fn written(variables: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut params = Params::new(&mut out);
    for (name, value) in variables {
        params.push(name, value).expect("a pair that fits");
    }
    params.finish();
    out
}

#[test]
fn requests_have_the_format_of_the_specification() {
    let mut out = Vec::new();
    fastcgi::begin(&mut out, true);
    let mut params = Params::new(&mut out);
    params.push(b"A", b"b").expect("a pair that fits");
    params.finish();
    // Empty content writes no record, because an empty record would end the stream.
    fastcgi::stdin(&mut out, b"");
    fastcgi::stdin(&mut out, b"content");
    fastcgi::stdin_end(&mut out);
    let expected = [
        // Role 1, the responder, and flag 1, which keeps the connection open.
        (BEGIN, &[0, 1, 1, 0, 0, 0, 0, 0][..]),
        (PARAMS, b"\x01\x01Ab"),
        (PARAMS, b""),
        (STDIN, b"content"),
        (STDIN, b""),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(kind, content)| (*kind, content.to_vec()))
        .collect();
    assert_eq!(read(&out), expected);

    let mut out = Vec::new();
    Params::new(&mut out).finish();
    assert_eq!(
        read(&out),
        [(PARAMS, Vec::new())],
        "only the empty record that ends the variables"
    );
}

#[test]
fn a_variable_may_fill_one_record() {
    // The content of a record has at most 65,535 bytes. Here, the length of the name takes one byte, the length of the
    // value four bytes, and the name one byte. The value takes the rest.
    let most = 65_535 - 1 - 4 - 1;
    let mut out = Vec::new();
    let mut params = Params::new(&mut out);
    assert_eq!(
        params.push(b"N", &vec![b'x'; most + 1]),
        Err(rocknet_proto::cgi::VariableError::TooLong)
    );
    assert_eq!(params.push(b"N", &vec![b'x'; most]), Ok(()));
    params.finish();
    let records = read(&out);
    assert_eq!((records.len(), records[0].1.len()), (2, 65_535));
}

#[test]
fn bodies_of_any_size_are_split_into_records() {
    // A record carries at most 65,528 body bytes, the largest multiple of eight that its length field permits.
    for size in [1, 65_527, 65_528, 65_529, 65_535, 65_536, 200_000] {
        let content: Vec<u8> = (0..size).map(|number| number as u8).collect();
        let mut out = Vec::new();
        fastcgi::stdin(&mut out, &content);
        let records = read(&out);
        assert!(records.iter().all(|(kind, piece)| *kind == STDIN && !piece.is_empty()));
        assert_eq!(
            records.into_iter().flat_map(|(_, piece)| piece).collect::<Vec<_>>(),
            content
        );
    }
}

#[test]
fn invalid_records_are_errors() {
    // Returns a valid record, except that the byte at one position is replaced.
    let with = |at: usize, value: u8| {
        let mut bytes = record(STDOUT, b"x", 0);
        bytes[at] = value;
        bytes
    };
    let trailing = [end(0), vec![1]].concat();
    // Bytes of the response, and the expected error; `None` if the bytes are valid.
    for (bytes, error) in [
        (with(0, 2), Some(RecordError::Version)),
        (b"HTTP/1.1 400".to_vec(), Some(RecordError::Version)),
        (with(3, 2), Some(RecordError::RequestId)),
        (with(2, 1), Some(RecordError::RequestId)),
        (with(1, PARAMS), Some(RecordError::RecordType)),
        (with(1, 99), Some(RecordError::RecordType)),
        // A management record belongs to the connection instead of a request, and is skipped.
        (with(3, 0), None),
        (record(END, b"1234567", 0), Some(RecordError::EndLength)),
        (record(END, b"123456789", 0), Some(RecordError::EndLength)),
        (trailing, Some(RecordError::AfterEnd)),
        (end(9), None),
    ] {
        let single = read_response(bytes.chunks(1));
        assert_eq!(
            (read_response([&bytes[..]]), single.error),
            (single, error),
            "{bytes:?}"
        );
    }
}

proptest! {
    #[test]
    fn any_split_gives_the_same_response(
        records in vec((any::<bool>(), vec(any::<u8>(), 0..40), any::<u8>()), 0..8),
        padding in any::<u8>(),
        cuts in vec(1..60_usize, 1..40),
    ) {
        let (mut bytes, mut expected) = (Vec::new(), ReadResponse::default());
        for (is_stdout, content, padding) in &records {
            let (kind, stream) = match is_stdout {
                true => (STDOUT, &mut expected.stdout),
                false => (STDERR, &mut expected.stderr),
            };
            bytes.extend(record(kind, content, *padding));
            stream.extend_from_slice(content);
        }
        bytes.extend(end(padding));
        expected.end = Some(EndRequest { app_status: 7, protocol_status: 0 });
        prop_assert_eq!(&read_response([&bytes[..]]), &expected);
        prop_assert_eq!(&read_response(bytes.chunks(1)), &expected);
        let (mut pieces, mut rest) = (Vec::new(), &bytes[..]);
        for cut in cuts.iter().cycle() {
            let (piece, trailing) = rest.split_at(rest.len().min(*cut));
            pieces.push(piece);
            rest = trailing;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(&read_response(pieces), &expected);
        // The end is reported only after the whole END record, which includes its padding.
        prop_assert_eq!(read_response([&bytes[..bytes.len() - 1]]).end, None);
    }

    #[test]
    fn written_variables_are_read_back(
        variables in vec((vec(any::<u8>(), 0..200), vec(any::<u8>(), 0..30_000)), 0..12),
    ) {
        let records = read(&written(&variables));
        prop_assert!(records.iter().all(|(kind, _)| *kind == PARAMS));
        prop_assert_eq!(records.last().map(|(_, content)| content.len()), Some(0));
        prop_assert_eq!(records.iter().filter(|(_, content)| content.is_empty()).count(), 1);
        prop_assert_eq!(records.iter().flat_map(|(_, content)| pairs(content)).collect::<Vec<_>>(), variables);
    }

    #[test]
    fn any_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..300)) {
        rocknet_proto::fuzzing::fastcgi(&bytes);
    }
}
