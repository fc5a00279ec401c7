//! One request and its controller, over as many calls as they need.

use rocknet_controller::host::{self, CallError, Progress, RequestState};

use super::asked::Kept;
use super::draft::Draft;

/// All that a call needs. It goes to the thread that makes the call, and comes back.
pub struct Talk {
    controller: host::LoadedController,
    asked: Kept,
    content: Vec<u8>,
    pub draft: Draft,
    state: RequestState,
}

/// The next call.
pub enum Step {
    Answer,
    Take(Option<bytes::Bytes>),
}

impl Talk {
    pub fn new(controller: &host::LoadedController, asked: Kept, content: Vec<u8>, draft: Draft) -> Talk {
        Talk {
            controller: controller.clone(),
            asked,
            content,
            draft,
            state: RequestState::default(),
        }
    }

    pub fn step(&mut self, step: &Step) -> Result<Progress, CallError> {
        let asked = self.asked.here(&self.content);
        let (draft, state) = (&mut self.draft, &mut self.state);
        match step {
            Step::Answer => self.controller.answer(&asked, draft, state),
            Step::Take(piece) => self.controller.take(&asked, draft, state, piece.as_deref()),
        }
    }

    /// More of the body; nothing at its end.
    pub fn give(&mut self) -> Result<Vec<u8>, CallError> {
        let asked = self.asked.here(&self.content);
        let mut room = vec![0; ROOM];
        let given = self
            .controller
            .give(&asked, &mut self.draft, &mut self.state, &mut room)?;
        room.truncate(given);
        // A drop of an answer does not hold a whole room while it waits for its client.
        if given < ROOM / 2 {
            room.shrink_to_fit();
        }
        Ok(room)
    }
}

/// Bytes that a controller may give at once: enough that its call costs less than what is sent.
pub const ROOM: usize = 16 * 1024;
