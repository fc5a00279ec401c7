//! Writes the events of HTTP/1 connections, as server and as client, as lines of text. The code does the work of the
//! connection's caller: it keeps unread bytes, drops consumed bytes, and responds to each request.

use crate::fields::Fields;
use crate::h1::{AfterResponse, ClientConnection, ClientEvent, Length, RequestLine, ServerConnection, ServerEvent};
use crate::limits::Limits;
use crate::request::{RequestIndex, TargetForm, Version};
use crate::response::ResponseIndex;
use crate::status::Status;

/// Time at which the server sends its response, an empty 200. Requests for an upgrade get 101 at once. Requests that
/// the parser refuses get the status of the refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResponseTiming {
    /// After the head, so that the body is received and discarded.
    AfterHead,
    /// After the body, or after the head of a request without a body.
    AfterBody,
}

/// Returns the events of a server that receives `pieces`, one line each; consecutive data events share a line.
/// `site_limit` is the body limit in bytes that is set after each request head.
///
/// The last line is the state of the connection: `idle`, `more` (within a request), or the reason of its end.
pub fn server_transcript(
    pieces: &[&[u8]],
    limits: &Limits,
    site_limit: Option<u64>,
    timing: ResponseTiming,
) -> Vec<String> {
    let (mut connection, mut request) = (ServerConnection::new(), RequestIndex::default());
    let mut transcript = Transcript::default();
    let mut unread = Vec::new();
    for piece in pieces {
        unread.extend_from_slice(piece);
        loop {
            let received = connection.receive(limits, &unread, &mut request);
            let consumed = match received {
                Ok(ServerEvent::More { consumed }) => {
                    unread.drain(..consumed);
                    break;
                }
                Ok(ServerEvent::Blocked) => return transcript.end("blocked"),
                Ok(ServerEvent::Request { consumed, body }) => {
                    let mut line = request_line(&request, &unread[..consumed]);
                    line.push_str(&format!(" {body:?}"));
                    if connection.wants_continue() {
                        line.push_str(" expects");
                        connection.continue_sent();
                    }
                    transcript.push(line);
                    if let Some(Err(refusal)) = site_limit.map(|limit| connection.set_body_limit(limit)) {
                        return transcript.end(&format!("refused {refusal:?}"));
                    }
                    if connection.may_upgrade() {
                        // The last argument of `respond_complete` is true to close the connection.
                        let (_, next) = connection.respond_complete(Status::SWITCHING_PROTOCOLS, Length::None, false);
                        return transcript.end(&format!("{next:?}"));
                    }
                    if timing == ResponseTiming::AfterHead || body == crate::h1::BodyFraming::None {
                        let next = respond(&mut connection);
                        if !matches!(next, AfterResponse::KeepAlive | AfterResponse::Drain) {
                            return transcript.end(&format!("{next:?}"));
                        }
                    }
                    consumed
                }
                Ok(ServerEvent::Data { start, end }) => {
                    transcript.data(&unread[start..end]);
                    end
                }
                Ok(ServerEvent::End { consumed }) => {
                    transcript.push(format!("end{}", fields(request.trailers.view(&unread[..consumed]))));
                    if connection.may_respond() {
                        let next = respond(&mut connection);
                        if next != AfterResponse::KeepAlive {
                            return transcript.end(&format!("{next:?}"));
                        }
                    }
                    consumed
                }
                Err(refusal) => {
                    assert_eq!(
                        connection.receive(limits, &unread, &mut request),
                        Ok(ServerEvent::Blocked)
                    );
                    if connection.may_respond() {
                        let (framing, next) = connection.respond_complete(refusal.status(), Length::None, false);
                        assert_eq!(framing.connection, crate::h1::ConnectionField::Close);
                        assert_eq!(next, AfterResponse::Linger);
                    }
                    return transcript.end(&format!("refused {refusal:?}"));
                }
            };
            assert!(consumed <= unread.len(), "more consumed than there is");
            unread.drain(..consumed);
        }
    }
    transcript.end(if connection.is_idle() && unread.is_empty() {
        "idle"
    } else {
        "more"
    })
}

/// Responds with an empty 200, and returns the state of the connection after the response.
fn respond(connection: &mut ServerConnection) -> AfterResponse {
    connection.respond_complete(Status::OK, Length::Exact(0), false).1
}

/// Returns `METHOD path ?query @authority`, then the form of the target unless it is `Origin`, and ` 1.0` for HTTP/1.0.
fn request_line(index: &RequestIndex, bytes: &[u8]) -> String {
    let request = index.view(bytes);
    let mut line = format!("{} {}", text(request.method_name), text(request.path));
    if let Some(query) = request.query {
        line.push_str(&format!(" ?{}", text(query)));
    }
    line.push_str(&format!(" @{}", text(request.authority)));
    if request.form != TargetForm::Origin {
        line.push_str(&format!(" {:?}", request.form));
    }
    if request.version == Version::Http10 {
        line.push_str(" 1.0");
    }
    line
}

/// Returns the events of a client that receives `pieces` after one request, in the form of [`server_transcript`].
/// `upgrade` is the value of the request's `Upgrade` field; `None` leaves the field out.
///
/// The last line is the error, or one of these:
/// - `switched`: the protocol has changed.
/// - `blocked`: bytes follow a response after which the connection cannot be used again.
/// - `reusable`: the connection may carry another request.
/// - `end by close`: the upstream closes the connection after the pieces, which ends the body of the response.
/// - `not reusable`: the upstream closes the connection, and the response was complete before.
pub fn client_transcript(pieces: &[&[u8]], limits: &Limits, method: &str, upgrade: Option<&str>) -> Vec<String> {
    let (mut connection, mut response) = (ClientConnection::new(), ResponseIndex::default());
    let mut transcript = Transcript::default();
    let line = RequestLine {
        method: method.as_bytes(),
        target: b"/",
        host: b"a",
        length: Length::None,
        upgrade: upgrade.map(str::as_bytes),
        close: false,
    };
    if let Err(error) = connection.encode_request(&mut Vec::new(), &line, []) {
        return transcript.end(&error.to_string());
    }
    let mut unread = Vec::new();
    for piece in pieces {
        unread.extend_from_slice(piece);
        loop {
            let consumed = match connection.receive(limits, &unread, &mut response) {
                Ok(ClientEvent::More { consumed }) => {
                    unread.drain(..consumed);
                    break;
                }
                Ok(ClientEvent::Blocked) if unread.is_empty() => break,
                Ok(ClientEvent::Blocked) => return transcript.end("blocked"),
                Ok(ClientEvent::Interim { consumed }) => {
                    transcript.push(format!("interim {}", response.status));
                    consumed
                }
                Ok(ClientEvent::Response { consumed, body }) => {
                    let view = response.view(&unread[..consumed]);
                    let (status, shown) = (view.status, fields(view.fields));
                    transcript.push(format!("{status} {body:?}{shown}"));
                    consumed
                }
                Ok(ClientEvent::Data { start, end }) => {
                    transcript.data(&unread[start..end]);
                    end
                }
                Ok(ClientEvent::End { consumed }) => {
                    transcript.push(format!("end{}", fields(response.trailers.view(&unread[..consumed]))));
                    consumed
                }
                Ok(ClientEvent::Switched { .. }) => return transcript.end("switched"),
                Err(error) => {
                    assert_eq!(
                        connection.receive(limits, &unread, &mut response),
                        Ok(ClientEvent::Blocked)
                    );
                    assert!(!connection.is_reusable());
                    return transcript.end(&format!("error {error:?}"));
                }
            };
            assert!(consumed <= unread.len(), "more consumed than there is");
            unread.drain(..consumed);
        }
    }
    if connection.is_reusable() {
        return transcript.end("reusable");
    }
    match connection.closed() {
        Ok(true) => transcript.end("end by close"),
        Ok(false) => transcript.end("not reusable"),
        Err(error) => transcript.end(&format!("error {error:?}")),
    }
}

/// Returns ` NAME=VALUE` for each field, one after the other.
fn fields(fields: Fields<'_>) -> String {
    fields
        .iter()
        .map(|(name, value)| format!(" {}={}", text(name), text(value)))
        .collect()
}

/// Returns bytes as text, in which bytes other than printable ASCII are escaped.
fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

#[derive(Default)]
struct Transcript {
    lines: Vec<String>,
    /// True if the last line contains data, so that further data is appended to it.
    in_data: bool,
}

impl Transcript {
    fn push(&mut self, line: String) {
        self.lines.push(line);
        self.in_data = false;
    }

    /// Adds data to the current data line, or begins one.
    fn data(&mut self, data: &[u8]) {
        assert!(!data.is_empty(), "a data event without bytes");
        if !self.in_data {
            self.push("data ".to_owned());
            self.in_data = true;
        }
        if let Some(line) = self.lines.last_mut() {
            line.push_str(&text(data));
        }
    }

    /// Adds the state of the connection as the last line, and returns all lines.
    fn end(mut self, state: &str) -> Vec<String> {
        self.push(state.to_owned());
        self.lines
    }
}
