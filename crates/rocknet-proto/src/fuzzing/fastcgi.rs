//! What a web server makes of an application's answer by FastCGI, as plain lines.

use crate::cgi::{FIELDS_LIMIT, HEAD_LIMIT, Head, StatusLine, end_of_head};
use crate::fastcgi::{Event, Response};

/// Both streams whole, how it ended or what was wrong, and the head if there is one. How the streams were cut into
/// pieces is left out: that depends on how the bytes came.
pub(super) fn conversation(pieces: &[&[u8]]) -> Vec<String> {
    let mut records = Response::new();
    let (mut stdout, mut stderr, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    let mut head_end = None;
    'all: for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let received = match records.receive(rest) {
                Ok(received) => received,
                Err(error) => {
                    lines.push(format!("error {error:?}"));
                    break 'all;
                }
            };
            match received.event {
                Event::Stdout(place) => {
                    let before = stdout.len();
                    stdout.extend_from_slice(&rest[place]);
                    if head_end.is_none() {
                        head_end = end_of_head(&stdout, before);
                    }
                }
                Event::Stderr(place) => stderr.extend_from_slice(&rest[place]),
                Event::End(end) => lines.push(format!("{end:?}")),
                Event::More => assert_eq!(received.consumed, rest.len(), "all is taken when more is wanted"),
            }
            rest = &rest[received.consumed..];
        }
    }
    lines.push(format!("{} {stdout:?} {stderr:?}", records.is_over()));
    if let Some(end) = head_end.filter(|end| *end <= HEAD_LIMIT) {
        let head = Head::parse(&stdout[..end], StatusLine::Refused);
        assert!(head.as_ref().is_ok_and(|head| head.fields.len() <= FIELDS_LIMIT) || head.is_err());
        lines.push(format!("{head:?}"));
    }
    lines
}
