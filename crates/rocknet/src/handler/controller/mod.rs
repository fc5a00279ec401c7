//! Controllers: functions in shared libraries that handle requests. They run on the thread of the connection or of the
//! blocking pool (key `run_on`), or in a separate process (key `isolate`, see `isolated`).
//!
//! ```text
//! Exchange ─▶ request_view.rs ─▶ call.rs ⇄ rocknet-controller's host ⇄ the library
//!                                   │
//!    Response ◀─ response_builder.rs: status, fields, and a body that is complete or comes from body.rs
//! ```
//! `libraries.rs` loads each library file once, from the copy that `private_copy.rs` makes of it.

mod body;
mod buffered_body;
mod call;
mod error;
pub mod isolated;
mod libraries;
mod loaded;
mod private_copy;
mod request_view;
mod response_builder;

use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::model::{self, Settings};
use rocknet_controller::host::{self, Progress};

use self::buffered_body::{receive_all, with_body};
use self::call::{CallStep, ControllerCall};
use self::error::ControllerError;
use self::loaded::{LoadedController, RunMode};
use self::request_view::SavedRequest;
use self::response_builder::ResponseBuilder;
use crate::exchange::Exchange;
use crate::handler::{ExchangeRef, Handler, HandlerFuture};
use crate::response::{Body, Response};
use crate::services::Services;

pub use self::libraries::{Libraries, LoadError};
pub use self::request_view::RequestOrigin;

/// The handler of a route with a controller.
pub struct ControllerHandler(Arc<LoadedController>);

impl ControllerHandler {
    /// Loads the library, if it is not loaded yet, and creates the handler of one of its controllers.
    ///
    /// # Errors
    ///
    /// Fails if the library cannot be loaded or has no such controller. The message names the line of the
    /// configuration.
    pub fn new(configured: &model::Controller, settings: &Settings, libraries: &Libraries) -> Result<Self, String> {
        LoadedController::new(configured, settings, libraries).map(|controller| ControllerHandler(Arc::new(controller)))
    }
}

impl Handler for ControllerHandler {
    #[inline]
    fn handle_now(&self, request: &ExchangeRef<'_>) -> Option<Response> {
        self.0.handle_now(request)
    }

    /// Calls the controller as often as the request needs.
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        let controller = Arc::clone(&self.0);
        Box::pin(async move {
            let name = Arc::clone(&controller.name);
            let services = Rc::clone(&exchange.services);
            let result = match &controller.mode {
                RunMode::Process(isolated) => isolated::answer(&services, &name, isolated, exchange).await,
                // `Network`: on the thread of the connection. `Worker`: in the pool.
                RunMode::Network(loaded) | RunMode::Worker(loaded) => {
                    let loaded = loaded.clone();
                    try_answer(services, controller, loaded, exchange).await
                }
            };
            result.unwrap_or_else(|error| error.to_response(&name)).into()
        })
    }
}

/// Makes the response by calls of a controller that runs in this process.
async fn try_answer(
    services: Rc<Services>,
    controller: Arc<LoadedController>,
    loaded: host::LoadedController,
    exchange: Exchange,
) -> Result<Response, ControllerError> {
    let route = Arc::clone(&exchange.route);
    let (request, mut request_body) = SavedRequest::of(exchange);
    // True if the controller receives the request body in pieces.
    let takes = loaded.takes();
    let buffered = if takes {
        Vec::new()
    } else {
        receive_all(&mut request_body).await?
    };
    let call = ControllerCall::new(
        &loaded,
        request,
        buffered,
        ResponseBuilder::new(Arc::clone(&controller.name)),
    );
    let (mut call, mut progress) = controller
        .step(&services, &route, Box::new(call), CallStep::Start)
        .await?;
    let mut is_at_end = !takes;
    while !is_at_end && progress == Progress::Continue {
        let piece = request_body.chunk().await.map_err(ControllerError::RequestBody)?;
        is_at_end = piece.is_none();
        (call, progress) = controller.step(&services, &route, call, CallStep::Take(piece)).await?;
    }
    let (response, written) = call.response.finish_head()?;
    // A controller that does not produce the response body in pieces has written all of it.
    if !loaded.gives() {
        return Ok(with_body(response, written));
    }
    let body = body::ControllerBody::new(services, route, controller, written, call);
    Ok(response.body(Body::Stream(Box::new(body))))
}
