//! Tests that frames survive a round trip however the bytes are split, and that invalid frames are rejected.

use super::super::RequestView;
use super::*;
use crate::abi;

/// Checks that frames are read whole, byte by byte, and together with the frames after them.
#[track_caller]
fn check(write: impl Fn(&mut Vec<u8>), read: impl Fn(&mut FrameReader) -> Option<String>, expected: &[&str]) {
    let mut bytes = Vec::new();
    write(&mut bytes);
    for step in [1, 2, 3, 7, bytes.len().max(1)] {
        let (mut reader, mut found) = (FrameReader::default(), Vec::new());
        for piece in bytes.chunks(step) {
            reader.spare()[..piece.len()].copy_from_slice(piece);
            reader.advance(piece.len());
            while let Some(message) = read(&mut reader) {
                found.push(message);
            }
        }
        assert_eq!(found, expected, "{step} bytes at a time");
        assert!(reader.is_empty());
    }
}

#[test]
fn server_messages_survive_a_round_trip() {
    check(
        |to| {
            for message in [
                ServerMessage::Begin(513, b"request"),
                ServerMessage::Content(b""),
                ServerMessage::Piece(b"abc"),
                ServerMessage::End,
                ServerMessage::Give,
            ] {
                message.write(to).unwrap();
            }
        },
        |reader| {
            reader
                .next_server_message()
                .unwrap()
                .map(|message| format!("{message:?}"))
        },
        &[
            "Begin(513, [114, 101, 113, 117, 101, 115, 116])",
            "Content([])",
            "Piece([97, 98, 99])",
            "End",
            "Give",
        ],
    );
}

#[test]
fn process_messages_survive_a_round_trip() {
    check(
        |to| {
            let fields: [(&[u8], &[u8]); 2] = [(b"A", b"1"), (b"B", b"")];
            ProcessMessage::Log(Level::Warn, b"hm").write(to).unwrap();
            ProcessMessage::Continue.write(to).unwrap();
            write_head(to, 200, 7, fields.into_iter()).unwrap();
            ProcessMessage::Body(b"x").write(to).unwrap();
            ProcessMessage::Failed(-9).write(to).unwrap();
            ProcessMessage::NoStatus.write(to).unwrap();
            ProcessMessage::Refused(Refused::TooMuch).write(to).unwrap();
        },
        |reader| {
            reader.next_process_message().unwrap().map(|message| match &message {
                ProcessMessage::Head(head) => {
                    format!("{} {} {:?}", head.status, head.size, head.fields().collect::<Vec<_>>())
                }
                message => format!("{message:?}"),
            })
        },
        &[
            "Log(Warn, [104, 109])",
            "Continue",
            "200 7 [Ok(([65], [49])), Ok(([66], []))]",
            "Body([120])",
            "Failed(-9)",
            "NoStatus",
            "Refused(TooMuch)",
        ],
    );
}

#[test]
fn levels_and_refusals_survive_a_round_trip() {
    for level in [Level::Error, Level::Warn, Level::Info, Level::Debug] {
        assert_eq!(level_of(level_number(level)), level);
    }
    for refused in [
        Refused::Late,
        Refused::Invalid,
        Refused::TooMuch,
        Refused::NotYours,
        Refused::Unknown,
    ] {
        assert_eq!(refused_of(refused_number(refused)), refused);
    }
}

#[test]
fn invalid_frames_are_errors_and_incomplete_frames_are_not() {
    let over = u32::try_from(MAX_FRAME + 1).unwrap().to_le_bytes();
    let most = u32::try_from(MAX_FRAME).unwrap().to_le_bytes();
    for (bytes, expected) in [
        (&b""[..], Ok(())),
        (&[CONTINUE, 0, 0, 0], Ok(())),
        (&[BODY, 2, 0, 0, 0, 1], Ok(())),
        (&[BODY, most[0], most[1], most[2], most[3]], Ok(())),
        (&[BODY, over[0], over[1], over[2], over[3]], Err(InvalidFrame)),
        (&[CONTINUE, 1, 0, 0, 0, 0], Err(InvalidFrame)),
        (&[BEGIN, 0, 0, 0, 0], Err(InvalidFrame)),
        (&[99, 0, 0, 0, 0], Err(InvalidFrame)),
        (&[HEAD, 7, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7], Err(InvalidFrame)),
        (&[FAILED, 7, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7], Err(InvalidFrame)),
        (&[LOG, 0, 0, 0, 0], Err(InvalidFrame)),
        (&[REFUSED, 0, 0, 0, 0], Err(InvalidFrame)),
    ] {
        let mut reader = FrameReader::default();
        reader.spare()[..bytes.len()].copy_from_slice(bytes);
        reader.advance(bytes.len());
        assert_eq!(
            reader
                .next_process_message()
                .map(|received| assert!(received.is_none())),
            expected,
            "{bytes:?}"
        );
    }
    let mut reader = FrameReader::default();
    reader.spare()[..6].copy_from_slice(&[BEGIN, 1, 0, 0, 0, 0]);
    reader.advance(6);
    assert_eq!(reader.next_server_message(), Err(InvalidFrame));
    // An incomplete field ends the iteration. The pair has 10 bytes: two sizes of 4 bytes, and two texts of 1 byte.
    for cut in 1..10 {
        let mut all = Vec::new();
        write_pair(&mut all, b"A", b"1");
        let fields = &all[..10 - cut];
        let head = ResponseHead {
            status: 200,
            size: 0,
            fields,
        };
        assert_eq!(head.fields().collect::<Vec<_>>(), [Err(InvalidFrame)]);
    }
    // A payload that is too large leaves the output unchanged.
    let mut to = Vec::new();
    assert_eq!(
        ServerMessage::Content(&vec![0; MAX_FRAME + 1]).write(&mut to),
        Err(InvalidFrame)
    );
    assert!(to.is_empty() && ServerMessage::Content(&vec![0; MAX_FRAME]).write(&mut to).is_ok());
}

/// Request with three properties and three header fields.
struct TestRequest;

impl RequestView for TestRequest {
    fn read(&self, property: u32) -> Option<&[u8]> {
        match property {
            abi::METHOD => Some(b"GET"),
            abi::QUERY => Some(b""),
            abi::LAST_PROPERTY => Some(b"last"),
            _ => None,
        }
    }

    fn field(&self, _: &[u8], _: usize) -> Option<&[u8]> {
        None
    }

    fn field_at(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let all: [(&[u8], &[u8]); 3] = [(b"Accept", b"a"), (b"X-Empty", b""), (b"accept", b"b")];
        all.get(index).copied()
    }

    fn content(&self) -> &[u8] {
        b""
    }
}

#[test]
fn a_request_survives_a_round_trip_and_an_incomplete_field_does_not_parse() {
    let bytes = encode_request(&TestRequest);
    let received = ReceivedRequest::read(&bytes).unwrap().with_content(b"content");
    for property in 0..abi::LAST_PROPERTY + 3 {
        assert_eq!(received.read(property), TestRequest.read(property), "{property}");
    }
    for index in 0..4 {
        assert_eq!(received.field_at(index), TestRequest.field_at(index));
    }
    assert_eq!(
        (
            received.field(b"ACCEPT", 0),
            received.field(b"accept", 1),
            received.field(b"accept", 2)
        ),
        (Some(&b"a"[..]), Some(&b"b"[..]), None)
    );
    assert_eq!(
        (received.field(b"x-empty", 0), received.content()),
        (Some(&b""[..]), &b"content"[..])
    );
    let mut whole = 0;
    for size in 0..bytes.len() {
        whole += usize::from(ReceivedRequest::read(&bytes[..size]).is_ok());
    }
    // A prefix is a valid request only after the properties, and after each field but the last.
    assert_eq!(whole, 3);
}
