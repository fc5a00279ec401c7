//! Writes the response of a FastCGI application as lines of text.

use crate::cgi::{CgiHead, MAX_FIELDS, MAX_HEAD_SIZE, StatusLine, find_head_end};
use crate::fastcgi::{RecordEvent, ResponseReader};

/// Returns a line for the end of the request (FCGI_END_REQUEST) and a line for the error, if they occurred. The next
/// line holds `true` if the request has ended, else `false`, then stdout and stderr. A line with the head follows, if
/// there is one. The data of each stream is joined, so that the lines are the same however the bytes are split into
/// `pieces`.
pub(super) fn transcript(pieces: &[&[u8]]) -> Vec<String> {
    let mut records = ResponseReader::new();
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
                RecordEvent::Stdout(range) => {
                    let before = stdout.len();
                    stdout.extend_from_slice(&rest[range]);
                    if head_end.is_none() {
                        head_end = find_head_end(&stdout, before);
                    }
                }
                RecordEvent::Stderr(range) => stderr.extend_from_slice(&rest[range]),
                RecordEvent::End(end) => lines.push(format!("{end:?}")),
                RecordEvent::More => assert_eq!(
                    received.consumed,
                    rest.len(),
                    "all bytes are consumed before more are requested"
                ),
            }
            rest = &rest[received.consumed..];
        }
    }
    lines.push(format!("{} {stdout:?} {stderr:?}", records.is_ended()));
    if let Some(end) = head_end.filter(|end| *end <= MAX_HEAD_SIZE) {
        let head = CgiHead::parse(&stdout[..end], StatusLine::Refused);
        if let Ok(head) = &head {
            assert!(head.fields.len() <= MAX_FIELDS);
        }
        lines.push(format!("{head:?}"));
    }
    lines
}
