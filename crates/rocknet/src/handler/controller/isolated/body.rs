//! A response body that an isolated controller produces in pieces, each on demand.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use rocknet_controller::host::frame::ServerMessage;

use super::call::{CallReply, IsolatedCall};
use crate::handler::controller::error::ControllerError;
use crate::handler::controller::response_builder::ResponseBuilder;
use crate::response::Stream;

/// The response body of an isolated controller that produces it in pieces.
pub struct IsolatedBody {
    /// Name of the controller, for the log.
    controller: Arc<str>,
    /// Body bytes that the controller wrote together with the head; empty once they have been returned.
    written: Vec<u8>,
    /// `None` once the body is complete or has failed.
    call: Option<IsolatedCall>,
    /// Response builder of the request. Its head is finished; it only logs the lines that the controller still sends.
    builder: ResponseBuilder,
}

impl IsolatedBody {
    pub fn new(controller: Arc<str>, written: Vec<u8>, call: IsolatedCall, builder: ResponseBuilder) -> IsolatedBody {
        IsolatedBody {
            controller,
            written,
            call: Some(call),
            builder,
        }
    }

    /// Returns the bytes written with the head first, then each piece that the controller produces; `None` at the end.
    async fn next_piece(&mut self) -> Option<Result<Bytes, ControllerError>> {
        if !self.written.is_empty() {
            return Some(Ok(std::mem::take(&mut self.written).into()));
        }
        // The call is taken out of `self`, so that dropping this future drops the call, which notifies the process.
        let mut call = self.call.take()?;
        let reply = match call.queue(&ServerMessage::Give) {
            Ok(()) => call.call(&mut self.builder).await,
            Err(error) => Err(error),
        };
        match reply {
            // An empty piece is the end of the body.
            Ok(CallReply::Body(piece)) if piece.is_empty() => {
                call.finish();
                None
            }
            Ok(CallReply::Body(piece)) => {
                call.release_buffers();
                self.call = Some(call);
                Some(Ok(piece))
            }
            Ok(_) => Some(Err(ControllerError::Protocol)),
            Err(error) => Some(Err(error)),
        }
    }
}

impl Stream for IsolatedBody {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(async move {
            let piece = self.next_piece().await;
            piece.map(|piece| piece.map_err(|error| io::Error::other(format!("{}: {error}", self.controller))))
        })
    }
}
