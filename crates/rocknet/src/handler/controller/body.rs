//! A response body that a controller produces in pieces, each on demand.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use super::call::ControllerCall;
use super::error::ControllerError;
use super::loaded::LoadedController;
use crate::response::Stream;
use crate::route::Route;
use crate::services::Services;

/// The response body of a controller that produces it in pieces.
pub struct ControllerBody {
    services: Rc<Services>,
    route: Arc<Route>,
    controller: Arc<LoadedController>,
    /// Body bytes that the controller wrote together with the head; empty once they have been returned.
    written: Vec<u8>,
    /// `None` once the body is complete or has failed.
    call: Option<Box<ControllerCall>>,
}

impl ControllerBody {
    pub fn new(
        services: Rc<Services>,
        route: Arc<Route>,
        controller: Arc<LoadedController>,
        written: Vec<u8>,
        call: Box<ControllerCall>,
    ) -> ControllerBody {
        ControllerBody {
            services,
            route,
            controller,
            written,
            call: Some(call),
        }
    }

    /// Returns the bytes written with the head first, then each piece that the controller produces; `None` at the end.
    /// The call moves to the thread that runs it, and comes back with the piece.
    async fn next_piece(&mut self) -> Option<Result<Bytes, ControllerError>> {
        if !self.written.is_empty() {
            return Some(Ok(std::mem::take(&mut self.written).into()));
        }
        let call = self.call.take()?;
        let piece = self
            .controller
            .dispatch(&self.services, &self.route, call, ControllerCall::next_piece)
            .await;
        match piece {
            // An empty piece is the end of the body.
            Ok((_, Ok(piece))) if piece.is_empty() => None,
            Ok((call, Ok(piece))) => {
                self.call = Some(call);
                Some(Ok(piece.into()))
            }
            Ok((_, Err(failed))) => Some(Err(ControllerError::Failed(failed))),
            Err(error) => Some(Err(error)),
        }
    }
}

impl Stream for ControllerBody {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(async move {
            let piece = self.next_piece().await;
            piece.map(|piece| piece.map_err(|error| io::Error::other(format!("{}: {error}", self.controller.name))))
        })
    }
}
