//! The response of an isolated controller, in as many calls as it takes.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rocknet_controller::host::frame::{self, ServerMessage};

use super::body::Given;
use super::conversation::{Conversation, Heard};
use super::library::Controller;
use crate::exchange::{Exchange, RequestBody};
use crate::handler::controller::asked::{Here, Origin};
use crate::handler::controller::content::{collect, whole};
use crate::handler::controller::draft::{Draft, MAX_BODY};
use crate::handler::controller::trouble::Trouble;
use crate::response::{Body, Response};
use crate::services::Services;

/// Longest wait for a process that is being started: a library loads in milliseconds.
const STARTING: Duration = Duration::from_secs(5);

/// Has the controller answer, in as many calls as that takes.
pub async fn answer(
    services: &Rc<Services>,
    name: &Arc<str>,
    controller: &Controller,
    mut exchange: Exchange,
) -> Result<Response, Trouble> {
    let mut content = std::mem::replace(&mut exchange.body, RequestBody::empty());
    let route = &exchange.route;
    let collected = match controller.takes {
        true => Vec::new(),
        false => collect(&mut content).await?,
    };
    let deadline = services.wheel.deadline();
    // A tick less than the protocol waits for an answer: it would say 503 without a word of why.
    deadline.set(services.wheel.ticks(route.answer_timeout).saturating_sub(1));
    let place = controller
        .library
        .supervised
        .places
        .enter(route.priority, &deadline)
        .await;
    let place = place.ok_or(Trouble::Full)?;
    deadline.set(services.wheel.ticks(STARTING));
    let mut talk = Conversation::open(&controller.library, place, &deadline).await?;
    drop(deadline);

    let request = {
        let origin = Origin::of(&exchange);
        frame::encode_request(&Here::new(exchange.request.view(), &exchange.path, &[], origin))
    };
    let mut draft = Draft::new(Arc::clone(name));
    talk.begin(controller.number, &request, &collected)?;
    drop((request, collected));
    let mut size = loop {
        match talk.call(&mut draft).await? {
            Heard::Head(size) => break size,
            Heard::On if controller.takes => {}
            Heard::On | Heard::Body(_) => return Err(Trouble::Nonsense),
        }
        match content.chunk().await.map_err(Trouble::Content)? {
            Some(piece) => {
                // A piece that is larger than a frame is no piece of ours.
                talk.say(&ServerMessage::Piece(&piece))?;
            }
            None => talk.say(&ServerMessage::End)?,
        }
    };
    if size > MAX_BODY {
        return Err(Trouble::Nonsense);
    }
    let mut written = Vec::with_capacity(size);
    while size > 0 {
        match talk.hear(&mut draft).await? {
            Heard::Body(piece) if piece.len() <= size && !piece.is_empty() => {
                size -= piece.len();
                written.extend_from_slice(&piece);
            }
            _ => return Err(Trouble::Nonsense),
        }
    }
    let (response, _) = draft.begin()?;
    if !controller.gives {
        talk.end();
        return Ok(whole(response, written));
    }
    talk.rest();
    let body = Given::new(Arc::clone(name), written, talk, draft);
    Ok(response.body(Body::Stream(Box::new(body))))
}
