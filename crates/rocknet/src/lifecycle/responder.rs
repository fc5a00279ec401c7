//! The part of an exchange that each HTTP version implements: how its response is sent.

use std::fmt;

use rocknet_proto::status::Status;

use super::body::BodySource;
use crate::interim::InterimResponse;
use crate::pipeline::PipelineIo;
use crate::response::{Body, FieldList, Text};

/// Writes the response of one exchange: on the whole connection, or on a stream of it.
pub trait Responder: PipelineIo {
    /// Whether a response may be begun, or is to be ended: false once the exchange is gone.
    fn may_respond(&self) -> bool;

    /// Writes the head of a response, and what the version sends of its body together with it. `close`: a connection that
    /// carries nothing else ends with the response.
    ///
    /// # Errors
    ///
    /// A field cannot be sent. Nothing was written.
    fn respond(
        &mut self,
        status: Status,
        fields: &FieldList,
        body: Body,
        close: bool,
    ) -> Result<HeadResult, UnsendableField>;

    /// Responds with 500 and without a body, in place of a head that could not be written.
    fn respond_broken(&mut self);

    /// True if the client asked for a protocol switch that the server can accept.
    fn may_switch_protocol(&self) -> bool {
        true
    }

    /// Agrees to another protocol. Returns the status that it has done so with; `None`: the exchange is gone.
    ///
    /// # Errors
    ///
    /// A field cannot be sent. Nothing was written.
    fn switch_protocol(&mut self, fields: FieldList, protocol: Text) -> Result<Option<Status>, UnsendableField>;

    /// Writes an interim response, if the client takes such.
    ///
    /// # Errors
    ///
    /// A field cannot be sent. Nothing was written.
    fn send_interim(&mut self, interim: &InterimResponse) -> Result<(), UnsendableField>;

    /// Takes the ready piece of the body.
    fn send_piece(&mut self, body: &mut BodySource) -> PieceResult;

    /// Ends the response, whose body was taken.
    ///
    /// # Errors
    ///
    /// A trailer field cannot be sent. The response was not ended.
    fn finish(&mut self, trailers: Option<&FieldList>) -> Result<(), UnsendableField>;

    /// Gives the response up, so that the client notices that it is not complete.
    fn abort(&mut self);

    /// Result of [`PipelineIo::send`] for the body.
    fn prepared_result(&mut self) -> &mut PreparedResult;

    /// Takes back what was announced together with a response that will not be sent.
    fn cancel_pushes(&mut self) {}
}

/// Result of sending a response head.
pub enum HeadResult {
    /// The response is complete, with so many bytes of its body.
    Complete(u64),
    /// The body follows.
    Body(BodySource),
    /// The exchange is gone, or its response was begun before.
    Gone,
}

/// Result of sending a piece of a body.
pub enum PieceResult {
    /// So many bytes were queued for the socket.
    Queued(u64),
    /// The piece stays in the body until windows and priorities let it leave.
    Offered,
    /// The exchange is gone.
    Gone,
}

/// Result of sending the body of a prepared response.
#[derive(Default)]
pub struct PreparedResult {
    /// Bytes that were queued for the socket.
    pub bytes: u64,
    /// The rest that could not be sent at once.
    pub body: Option<BodySource>,
}

/// A field that cannot be sent.
#[derive(Debug)]
pub struct UnsendableField(String);

impl UnsendableField {
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
