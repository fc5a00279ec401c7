//! Reads a request body from the connection for a handler.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rocknet_io::link::Link;
use rocknet_proto::h1::{Refusal, ServerConnection, ServerEvent};
use rocknet_proto::limits::Limits;
use rocknet_proto::request::RequestIndex;

use crate::exchange::BodyChannel;
use crate::response::FieldList;

/// Event of a request body.
pub enum BodyEvent {
    /// Bytes of the body, without their framing.
    Chunk(Bytes),
    /// The body and its trailers are complete.
    End,
    /// The client has closed the connection within the body.
    Disconnected,
    /// The body is malformed or too large.
    Refused(Refusal),
}

/// Returns the next event of the body, from `unread` or from newly received bytes. Trailers are put into `channel`
/// before the end is returned. `input`: receive buffer. `request`: reused for the positions of the trailers.
pub fn poll_body<L: Link>(
    engine: &mut ServerConnection,
    link: &mut L,
    context: &mut Context<'_>,
    limits: &Limits,
    unread: &mut Vec<u8>,
    input: &mut [u8],
    request: &mut RequestIndex,
    channel: &BodyChannel,
) -> Poll<io::Result<BodyEvent>> {
    loop {
        let parsed = parse(engine, limits, unread, request, channel);
        take(unread, parsed.consumed);
        if let Some(event) = parsed.event {
            return Poll::Ready(Ok(event));
        }
        let received = ready!(link.poll_recv(context, input))?;
        if received.is_empty() {
            return Poll::Ready(Ok(BodyEvent::Disconnected));
        }
        if unread.is_empty() {
            // In most cases all received bytes belong to the body, so they are parsed in place and copied only once.
            let parsed = parse(engine, limits, &received, request, channel);
            unread.extend_from_slice(&received[parsed.consumed..]);
            if let Some(event) = parsed.event {
                return Poll::Ready(Ok(event));
            }
        } else {
            unread.extend_from_slice(&received);
        }
    }
}

/// Result of parsing received bytes.
struct ParsedBody {
    /// Number of bytes that were parsed.
    consumed: usize,
    /// `None` if more bytes are needed.
    event: Option<BodyEvent>,
}

/// Parses all available bytes into one piece. A piece for each chunk would be expensive: a chunk of one byte takes six
/// bytes (`1\r\nx\r\n`), and all remaining bytes would be moved after each chunk.
fn parse(
    engine: &mut ServerConnection,
    limits: &Limits,
    bytes: &[u8],
    request: &mut RequestIndex,
    channel: &BodyChannel,
) -> ParsedBody {
    let (mut consumed, mut data) = (0, Vec::new());
    let ended = loop {
        match engine.receive(limits, &bytes[consumed..], request) {
            Ok(ServerEvent::Data { start, end }) => {
                data.extend_from_slice(&bytes[consumed + start..consumed + end]);
                consumed += end;
            }
            // If data precedes the end, the data is returned first, and the next call returns the end.
            Ok(ServerEvent::End { consumed: end }) => {
                let trailers = request.trailers.view(&bytes[consumed..]);
                channel.put_trailers(FieldList::from_fields(trailers.lines()));
                consumed += end;
                break true;
            }
            Ok(ServerEvent::More { consumed: more }) => {
                consumed += more;
                break false;
            }
            // The body is already complete: an earlier call reached its end, and returned the data before the end.
            Ok(ServerEvent::Blocked | ServerEvent::Request { .. }) => break true,
            // The data before the error is discarded, because the exchange is over.
            Err(refusal) => {
                let event = Some(BodyEvent::Refused(refusal));
                return ParsedBody { consumed, event };
            }
        }
    };
    let event = if !data.is_empty() {
        Some(BodyEvent::Chunk(data.into()))
    } else {
        ended.then_some(BodyEvent::End)
    };
    ParsedBody { consumed, event }
}

/// Removes the first bytes of `unread`, and frees its memory if no bytes are left.
fn take(unread: &mut Vec<u8>, bytes: usize) {
    if bytes == unread.len() {
        *unread = Vec::new();
    } else {
        unread.drain(..bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use rocknet_io::sim;

    use super::*;
    use crate::exchange::RequestBody;

    /// Sends a request body in one piece, and checks the pieces that are read and the end of the body. Returns the
    /// trailers of the body.
    fn check(content: &str, expected: &[&str], expected_end: &str) -> Option<FieldList> {
        let head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        let (mut engine, limits, mut request) = (ServerConnection::new(), Limits::default(), RequestIndex::default());
        assert!(matches!(
            engine.receive(&limits, head, &mut request),
            Ok(ServerEvent::Request { .. })
        ));
        let (mut link, peer) = sim::pair();
        peer.send(content.as_bytes()).end();
        let (mut unread, mut input, mut pieces) = (Vec::new(), vec![0; 64 * 1024], Vec::new());
        let mut context = Context::from_waker(Waker::noop());
        let (mut handler, channel) = RequestBody::channel();
        let found = loop {
            let event = poll_body(
                &mut engine,
                &mut link,
                &mut context,
                &limits,
                &mut unread,
                &mut input,
                &mut request,
                &channel,
            );
            match event {
                Poll::Ready(Ok(BodyEvent::Chunk(chunk))) => pieces.push(String::from_utf8_lossy(&chunk).into_owned()),
                Poll::Ready(Ok(BodyEvent::End)) => break "end",
                Poll::Ready(Ok(BodyEvent::Disconnected)) => break "disconnected",
                Poll::Ready(Ok(BodyEvent::Refused(_))) => break "refused",
                Poll::Ready(Err(_)) | Poll::Pending => break "stuck",
            }
        };
        assert_eq!(
            (&pieces[..], found),
            (
                &expected.iter().map(|piece| (*piece).to_owned()).collect::<Vec<_>>()[..],
                expected_end
            )
        );
        handler.take_trailers()
    }

    #[test]
    fn bytes_received_together_become_one_piece_however_small_the_chunks_are() {
        let many = "1\r\nx\r\n".repeat(5000);
        check(&format!("{many}0\r\n\r\n"), &[&"x".repeat(5000)], "end");
        check(&many, &[&"x".repeat(5000)], "disconnected");
        check("0\r\n\r\n", &[], "end");
        check("2\r\nab\r\n3\r\nc", &["abc"], "disconnected");
        check("2\r\nab\r\nno size\r\n", &[], "refused");
    }

    #[test]
    fn trailers_are_available_at_the_end_of_the_body() {
        // Encoded body, and the expected trailers.
        for (content, expected) in [
            ("0\r\n\r\n", None),
            (
                "2\r\nab\r\n0\r\nX-A: 1\r\nX-B: \r\n\r\n",
                Some(&[("X-A", "1"), ("X-B", "")][..]),
            ),
            ("0\r\nX-A: \u{e9}\r\n\r\n", Some(&[("X-A", "\u{e9}")])),
        ] {
            // Only the body that starts with a chunk of two bytes has data.
            let pieces: &[&str] = if content.starts_with('2') { &["ab"] } else { &[] };
            let found = check(content, pieces, "end");
            let found: Option<Vec<_>> = found.as_ref().map(|fields| fields.iter().collect());
            assert_eq!(found.as_deref(), expected, "{content}");
        }
        assert!(check("0\r\nHost: x\r\n\r\n", &[], "refused").is_none());
    }
}
