//! Handles one exchange by an isolated controller, with as many calls as it needs.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rocknet_controller::host::frame::{self, ServerMessage};

use super::body::IsolatedBody;
use super::call::{CallReply, IsolatedCall};
use super::library::IsolatedController;
use crate::exchange::{Exchange, RequestBody};
use crate::handler::controller::buffered_body::{receive_all, with_body};
use crate::handler::controller::error::ControllerError;
use crate::handler::controller::request_view::{RequestOrigin, RequestView};
use crate::handler::controller::response_builder::{MAX_BODY, ResponseBuilder};
use crate::response::{Body, Response};
use crate::services::Services;

/// Maximum wait for a process that is being started: a library loads in milliseconds.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// Calls the controller as often as the request needs, and returns its response.
pub async fn answer(
    services: &Rc<Services>,
    name: &Arc<str>,
    controller: &IsolatedController,
    mut exchange: Exchange,
) -> Result<Response, ControllerError> {
    let mut body = std::mem::replace(&mut exchange.body, RequestBody::empty());
    let route = &exchange.route;
    // A controller that receives the request body in pieces gets no buffered body.
    let buffered = match controller.takes {
        true => Vec::new(),
        false => receive_all(&mut body).await?,
    };
    let deadline = services.wheel.deadline();
    // Expires one tick before the response timeout of the connection, because that timeout would log a late response
    // although the controller was not called.
    deadline.set(services.wheel.ticks(route.answer_timeout).saturating_sub(1));
    let permit = controller
        .library
        .supervised
        .permits
        .acquire(route.priority, &deadline)
        .await;
    let permit = permit.ok_or(ControllerError::Full)?;
    deadline.set(services.wheel.ticks(START_TIMEOUT));
    let mut call = IsolatedCall::open(&controller.library, permit, &deadline).await?;
    drop(deadline);

    let request = {
        let origin = RequestOrigin::of(&exchange);
        frame::encode_request(&RequestView::new(exchange.request.view(), &exchange.path, &[], origin))
    };
    let mut builder = ResponseBuilder::new(Arc::clone(name));
    call.begin(controller.number, &request, &buffered)?;
    drop((request, buffered));
    let mut size = loop {
        match call.call(&mut builder).await? {
            CallReply::Head(size) => break size,
            CallReply::Continue if controller.takes => {}
            CallReply::Continue | CallReply::Body(_) => return Err(ControllerError::Protocol),
        }
        match body.chunk().await.map_err(ControllerError::RequestBody)? {
            Some(piece) => {
                // Fails if the piece exceeds the maximum frame. Pieces that the server receives are smaller.
                call.queue(&ServerMessage::Piece(&piece))?;
            }
            None => call.queue(&ServerMessage::End)?,
        }
    };
    // The builder in the process has the same limit, so a working process does not exceed it.
    if size > MAX_BODY {
        return Err(ControllerError::Protocol);
    }
    let mut written = Vec::with_capacity(size);
    while size > 0 {
        match call.receive(&mut builder).await? {
            CallReply::Body(piece) if piece.len() <= size && !piece.is_empty() => {
                size -= piece.len();
                written.extend_from_slice(&piece);
            }
            _ => return Err(ControllerError::Protocol),
        }
    }
    let (response, _) = builder.finish_head()?;
    // A controller that does not produce the response body in pieces has written all of it with the head.
    if !controller.gives {
        call.finish();
        return Ok(with_body(response, written));
    }
    call.release_buffers();
    let body = IsolatedBody::new(Arc::clone(name), written, call, builder);
    Ok(response.body(Body::Stream(Box::new(body))))
}
