//! The access log's line for a response.

use rocknet_proto::fields::Known;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use crate::exchange::Client;
use crate::forwarded;
use crate::log::{Record, SinkId};

use crate::worker::Worker;

/// Writes the line, if the site keeps a log. Of what could not be read as a request nothing is known, and nothing of it
/// gets into the log. `text` keeps the address of `peer`, the other end of the connection, as text from one request to the
/// next; one whose requests are others' has a new one each time.
#[inline]
pub fn write(
    worker: &Worker,
    access: Option<SinkId>,
    peer: Client,
    text: &mut Option<Box<str>>,
    request: Option<&Request<'_>>,
    status: Status,
    content_bytes: u64,
) {
    let Some(sink) = access else { return };
    let others = match request {
        Some(request) if worker.believes.get() => others(worker, peer, request),
        _ => None,
    };
    let client = match &others {
        Some(text) => text,
        None => &**text.get_or_insert_with(|| peer.to_string().into()),
    };
    worker.log.borrow_mut().record(
        sink,
        &Record {
            client,
            user: None,
            method: request.map_or(b"", |request| request.method_name),
            target: request.map_or(b"", |request| request.target),
            version: request.map_or("", |request| request.version.as_str()),
            status: status.code(),
            content_bytes,
            referer: request.and_then(|request| request.fields.get(Known::Referer)),
            user_agent: request.and_then(|request| request.fields.get(Known::UserAgent)),
            host: request.map_or(b"", |request| request.authority),
            duration_us: None,
        },
    );
}

/// Whose request it is that a trusted proxy has passed on.
#[cold]
fn others(worker: &Worker, peer: Client, request: &Request<'_>) -> Option<String> {
    let client = forwarded::client(&worker.view().snapshot.config.server, peer, request.fields);
    (client != peer).then(|| client.to_string())
}
