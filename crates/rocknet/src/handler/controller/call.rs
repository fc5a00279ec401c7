//! One request and its controller, over as many calls as they need.

use rocknet_controller::host::{self, CallError, Progress, RequestState};

use super::request_view::SavedRequest;
use super::response_builder::ResponseBuilder;

/// All that a call needs. It goes to the thread that makes the call, and comes back.
pub struct ControllerCall {
    controller: host::LoadedController,
    request: SavedRequest,
    body: Vec<u8>,
    pub response: ResponseBuilder,
    state: RequestState,
}

/// The next call.
pub enum CallStep {
    Start,
    Take(Option<bytes::Bytes>),
}

impl ControllerCall {
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

    /// Calls the controller. Blocks for as long as the controller does.
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
        // A drop of an answer does not hold a whole room while it waits for its client.
        if length < MAX_PIECE / 2 {
            piece.shrink_to_fit();
        }
        Ok(piece)
    }
}

/// Bytes that a controller may give at once: enough that its call costs less than what is sent.
pub const MAX_PIECE: usize = 16 * 1024;
