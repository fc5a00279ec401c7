//! Passes streams of arbitrary bytes to an HTTP/3 connection and writes its events as lines.

use crate::h2::DecodedHead;
use crate::h3::{Config, ConnectionEvent, Critical, ServerConnection, StreamId};
use crate::limits::Limits;

/// Upper bound for the memory of a connection in bytes, for any data on one stream.
const MEMORY_MAX: usize = 256 * 1024;

/// Receives a request stream in `pieces`. Returns its events, with the pieces of its body joined. The result does not
/// show whether a head was reported as a complete request, because that depends on whether the end of the stream
/// arrives together with the head.
pub(super) fn request(pieces: &[&[u8]], limits: &Limits) -> Vec<String> {
    // The last argument is the time, which is always 0.
    let mut connection = ServerConnection::new(&Config { connect_protocol: true }, limits, 0);
    let (stream, mut head) = (StreamId::new(0), DecodedHead::default());
    if connection.open(stream).is_err() {
        return Vec::new();
    }
    let (mut lines, mut body) = (Vec::new(), Vec::new());
    // Without bytes there is one empty piece, with the end of the stream.
    let pieces = if pieces.is_empty() { &[&[][..]] } else { pieces };
    for (number, piece) in pieces.iter().enumerate() {
        let mut rest = *piece;
        loop {
            let fin = number + 1 == pieces.len();
            let received = connection.receive(limits, 0, stream, rest, fin, &mut head);
            assert!(received.consumed <= rest.len(), "no more than the piece is consumed");
            assert!(connection.memory() < MEMORY_MAX, "memory is bounded");
            let is_over = match received.event {
                ConnectionEvent::More => break,
                ConnectionEvent::Data { start, end, .. } => {
                    body.extend_from_slice(&rest[start..end]);
                    false
                }
                ConnectionEvent::Request { .. } => {
                    let request = head.request();
                    lines.push(format!(
                        "{:?} {:?} {:?} {}",
                        request.method_name,
                        request.target,
                        request.authority,
                        request.fields.lines().count()
                    ));
                    false
                }
                event => {
                    lines.push(format!("body {body:?}"));
                    body.clear();
                    lines.push(format!("{event:?}"));
                    matches!(
                        event,
                        ConnectionEvent::Reset { .. } | ConnectionEvent::Closed { .. } | ConnectionEvent::Blocked
                    )
                }
            };
            if is_over {
                return lines;
            }
            rest = &rest[received.consumed..];
        }
    }
    lines.push(format!("body {body:?}"));
    lines
}

/// Receives a unidirectional stream in `pieces`. Returns the error or action that ends it, or else the output that it
/// causes.
pub(super) fn unidirectional(pieces: &[&[u8]]) -> Vec<String> {
    // The last argument is the time, which is always 0.
    let mut connection = ServerConnection::new(&Config::default(), &Limits::default(), 0);
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        // Stream 2 is the first unidirectional stream of a client (RFC 9000 §2.1). The time is always 0. The last
        // argument is true at the end of a stream.
        match connection.receive_unidirectional(2, 0, piece, false) {
            Ok(crate::h3::UnidirectionalAction::Continue) => {}
            Ok(action) => return vec![format!("{action:?}")],
            // The fuzz target compares the results of the same bytes in different pieces. The output is left out,
            // because it acknowledges instructions before an error only if the error is in a later piece.
            Err(error) => return vec![format!("{error:?}")],
        }
        assert!(connection.memory() < MEMORY_MAX, "memory is bounded");
    }
    let output = [Critical::Control, Critical::Encoder, Critical::Decoder].map(|stream| connection.take_output(stream));
    vec![format!("{output:?}")]
}
