//! Interface that each HTTP version implements to send the response of an exchange.

use std::fmt;
use std::rc::Rc;

use rocknet_handler::guard::Held;
use rocknet_proto::status::Status;

use super::body::BodySource;
use crate::interim::InterimResponse;
use crate::pipeline::PipelineIo;
use crate::response::{Body, FieldList, Text};

/// Writes the response of one exchange to the connection, or to a stream of it.
pub trait Responder: PipelineIo {
    /// Returns true if a response may be started or ended; false once the exchange is gone.
    fn may_respond(&self) -> bool;

    /// Writes the head of a response, and the first bytes of its body where the version sends them together. `close`:
    /// true if the connection must be closed after the response, unless it can carry several exchanges at a time.
    ///
    /// # Errors
    ///
    /// Fails if a field cannot be sent. In that case nothing was written.
    fn respond(
        &mut self,
        status: Status,
        fields: &FieldList,
        body: Body,
        close: bool,
    ) -> Result<HeadResult, UnsendableField>;

    /// Responds with 500 and no body, in place of a head that could not be written.
    fn respond_broken(&mut self);

    /// Returns true if a switch of protocols may be sent. HTTP/1 checks that the request has an `Upgrade` field that
    /// 101 may accept. HTTP/2 and HTTP/3 need no check: there, the switch is an ordinary response with status 200.
    fn may_switch_protocol(&self) -> bool {
        true
    }

    /// Switches to another protocol. Returns the status sent; `None` if the exchange is gone.
    ///
    /// # Errors
    ///
    /// Fails if a field cannot be sent. In that case nothing was written.
    fn switch_protocol(&mut self, fields: FieldList, protocol: Text) -> Result<Option<Status>, UnsendableField>;

    /// Writes an interim response, if the client accepts interim responses.
    ///
    /// # Errors
    ///
    /// Fails if a field cannot be sent. In that case nothing was written.
    fn send_interim(&mut self, interim: &InterimResponse) -> Result<(), UnsendableField>;

    /// Queues the ready piece of the body.
    fn send_piece(&mut self, body: &mut BodySource) -> PieceResult;

    /// Ends the response after its whole body was queued.
    ///
    /// # Errors
    ///
    /// Fails if a trailer field cannot be sent. In that case the response was not ended.
    fn finish(&mut self, trailers: Option<&FieldList>) -> Result<(), UnsendableField>;

    /// Aborts the response, so that the client notices that it is incomplete.
    fn abort(&mut self);

    /// Returns the result of the last [`PipelineIo::send`].
    fn prepared_result(&mut self) -> &mut PreparedResult;

    /// Keeps the values of a request, such as its permits, until its queued response has been sent. Called once the
    /// whole response is queued. HTTP/2 and HTTP/3 need no implementation: they queue only a bounded part of a body at
    /// a time, so a request does not release its permits much before its response has been sent.
    fn keep_until_sent(&mut self, _held: &Rc<Held>) {}

    /// Cancels the pushes promised with a response that will not be sent.
    fn cancel_pushes(&mut self) {}
}

/// Result of sending a response head.
pub enum HeadResult {
    /// The response is complete, with this many bytes of its body.
    Complete(u64),
    /// The body follows.
    Body(BodySource),
    /// The exchange is gone, or its response was started before.
    Gone,
}

/// Result of sending a piece of a body.
pub enum PieceResult {
    /// This many bytes were queued for the socket.
    Queued(u64),
    /// The piece stays in the body until flow-control windows and priorities allow its frames.
    Offered,
    /// The exchange is gone.
    Gone,
}

/// Result of sending the body of a prepared response.
#[derive(Default)]
pub struct PreparedResult {
    /// Bytes that were queued for the socket.
    pub bytes: u64,
    /// Rest of the body, if not all of it could be queued immediately.
    pub body: Option<BodySource>,
}

/// Header or trailer field that cannot be encoded.
#[derive(Debug)]
pub struct UnsendableField(String);

impl UnsendableField {
    /// Creates the error from the reason why the field cannot be encoded.
    #[cold]
    pub fn new(error: impl fmt::Display) -> UnsendableField {
        UnsendableField(error.to_string())
    }
}

impl fmt::Display for UnsendableField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns true for connection-specific fields of HTTP/1, which HTTP/2 and HTTP/3 forbid (RFC 9113 §8.2.2, RFC 9114
/// §4.2), and for `Content-Length`, which the protocol engine writes itself.
pub fn is_connection_specific(name: &[u8]) -> bool {
    [
        &b"connection"[..],
        b"keep-alive",
        b"proxy-connection",
        b"transfer-encoding",
        b"upgrade",
        b"content-length",
    ]
    .iter()
    .any(|known| name.eq_ignore_ascii_case(known))
}
