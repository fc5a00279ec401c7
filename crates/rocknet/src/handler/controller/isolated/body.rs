//! The body that an isolated controller gives bit by bit, asked for more whenever there is room for it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use rocknet_controller::host::frame::ServerMessage;

use super::conversation::{Conversation, Heard};
use crate::handler::controller::draft::Draft;
use crate::handler::controller::trouble::Trouble;
use crate::response::Stream;

pub struct Given {
    /// Who makes it, for the log.
    controller: Arc<str>,
    /// What was written before it begins.
    written: Vec<u8>,
    /// Gone once it has given all, or failed.
    talk: Option<Conversation>,
    /// Lines for the log go by it.
    draft: Draft,
}

impl Given {
    pub fn new(controller: Arc<str>, written: Vec<u8>, talk: Conversation, draft: Draft) -> Given {
        Given {
            controller,
            written,
            talk: Some(talk),
            draft,
        }
    }

    async fn more(&mut self) -> Option<Result<Bytes, Trouble>> {
        if !self.written.is_empty() {
            return Some(Ok(std::mem::take(&mut self.written).into()));
        }
        // Where this is dropped in the middle, so is the conversation, which tells the process.
        let mut talk = self.talk.take()?;
        let heard = match talk.say(&ServerMessage::Give) {
            Ok(()) => talk.call(&mut self.draft).await,
            Err(trouble) => Err(trouble),
        };
        match heard {
            Ok(Heard::Body(piece)) if piece.is_empty() => {
                talk.end();
                None
            }
            Ok(Heard::Body(piece)) => {
                talk.rest();
                self.talk = Some(talk);
                Some(Ok(piece))
            }
            Ok(_) => Some(Err(Trouble::Nonsense)),
            Err(trouble) => Some(Err(trouble)),
        }
    }
}

impl Stream for Given {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(async move {
            let more = self.more().await;
            more.map(|more| more.map_err(|trouble| io::Error::other(format!("{}: {trouble}", self.controller))))
        })
    }
}
