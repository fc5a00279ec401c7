//! One request to a controller, with the state that its calls share.

use rocknet_controller::host::{self, CallError, Progress, RequestState};

use super::request_view::SavedRequest;
use super::response_builder::ResponseBuilder;

/// Request, response and state of the calls. Moves to the thread that makes a call, and back.
pub struct ControllerCall {
    controller: host::LoadedController,
    request: SavedRequest,
    /// Request body; empty if the controller receives the body in pieces.
    body: Vec<u8>,
    pub response: ResponseBuilder,
    /// State that the controller keeps between the calls.
    state: RequestState,
}

/// Kind of the next call.
pub enum CallStep {
    /// The first call of a request.
    Start,
    /// Passes a piece of the request body; `None` is its end.
    Take(Option<bytes::Bytes>),
}

impl ControllerCall {
    /// Prepares the calls of one request. `body` is empty if the controller takes the request body in pieces.
    pub fn new(
        controller: &host::LoadedController,
        request: SavedRequest,
        body: Vec<u8>,
        response: ResponseBuilder,
    ) -> ControllerCall {
        ControllerCall {
            controller: controller.clone(),
            request,
            body,
            response,
            state: RequestState::default(),
        }
    }

    /// Calls the controller, and blocks until it returns.
    pub fn step(&mut self, step: &CallStep) -> Result<Progress, CallError> {
        let request = self.request.view(&self.body);
        let (response, state) = (&mut self.response, &mut self.state);
        match step {
            CallStep::Start => self.controller.answer(&request, response, state),
            CallStep::Take(piece) => self.controller.take(&request, response, state, piece.as_deref()),
        }
    }

    /// Calls the controller for the next piece of the response body; empty at the end.
    pub fn next_piece(&mut self) -> Result<Vec<u8>, CallError> {
        let request = self.request.view(&self.body);
        let mut piece = vec![0; MAX_PIECE];
        let length = self
            .controller
            .give(&request, &mut self.response, &mut self.state, &mut piece)?;
        piece.truncate(length);
        // Shrinks the buffer, so that a short piece does not occupy a full buffer while it waits for its client.
        if length < MAX_PIECE / 2 {
            piece.shrink_to_fit();
        }
        Ok(piece)
    }
}

/// Maximum bytes of a piece of the response body: enough that sending it costs more than the call.
pub const MAX_PIECE: usize = 16 * 1024;
