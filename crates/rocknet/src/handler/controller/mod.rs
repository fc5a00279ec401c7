//! Controllers: functions in shared libraries that answer, on the thread of the connection or in the pool.
//!
//! ```text
//! Exchange ─▶ asked.rs ─▶ talk.rs ⇄ rocknet-controller's host ⇄ the library    load.rs: one for each file
//!                            │                                                image.rs: what of it is loaded
//!    Response ◀─ draft.rs: status and fields, and a body that is whole, or comes by body.rs
//! ```
//! Or in a process of its own: see `isolated`.

mod asked;
mod body;
mod content;
mod draft;
mod image;
pub mod isolated;
mod load;
mod loaded;
mod talk;
mod trouble;

use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::model::{self, Settings};
use rocknet_controller::host::{self, Progress};

use self::asked::Kept;
use self::content::{collect, whole};
use self::draft::Draft;
use self::loaded::{Controller, Place};
use self::talk::{Step, Talk};
use self::trouble::Trouble;
use crate::exchange::Exchange;
use crate::handler::{ExchangeRef, Handler, HandlerFuture};
use crate::response::{Body, Response};
use crate::services::Services;

pub use self::asked::Origin;
pub use self::load::{Libraries, LoadError};

/// A controller as a handler.
pub struct ControllerHandler(Arc<Controller>);

impl ControllerHandler {
    /// See [`Controller::new`].
    pub fn new(wanted: &model::Controller, settings: &Settings, libraries: &Libraries) -> Result<Self, String> {
        Controller::new(wanted, settings, libraries).map(|controller| ControllerHandler(Arc::new(controller)))
    }
}

impl Handler for ControllerHandler {
    #[inline]
    fn handle_now(&self, asked: &ExchangeRef<'_>) -> Option<Response> {
        self.0.handle_now(asked)
    }

    /// Answers in as many calls as it takes.
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        let controller = Arc::clone(&self.0);
        Box::pin(async move {
            let name = Arc::clone(&controller.name);
            let services = Rc::clone(&exchange.services);
            let answered = match &controller.place {
                Place::Process(isolated) => isolated::answer(&services, &name, isolated, exchange).await,
                Place::Network(loaded) | Place::Worker(loaded) => {
                    let loaded = loaded.clone();
                    try_answer(services, controller, loaded, exchange).await
                }
            };
            answered.unwrap_or_else(|trouble| trouble.tell(&name)).into()
        })
    }
}

async fn try_answer(
    services: Rc<Services>,
    controller: Arc<Controller>,
    loaded: host::LoadedController,
    exchange: Exchange,
) -> Result<Response, Trouble> {
    let route = Arc::clone(&exchange.route);
    let (asked, mut content) = Kept::of(exchange);
    let takes = loaded.takes();
    let collected = if takes {
        Vec::new()
    } else {
        collect(&mut content).await?
    };
    let talk = Talk::new(&loaded, asked, collected, Draft::new(Arc::clone(&controller.name)));
    let (mut talk, mut went) = controller.run(&services, &route, Box::new(talk), Step::Answer).await?;
    let mut is_at_end = !takes;
    while !is_at_end && went == Progress::Continue {
        let piece = content.chunk().await.map_err(Trouble::Content)?;
        is_at_end = piece.is_none();
        (talk, went) = controller.run(&services, &route, talk, Step::Take(piece)).await?;
    }
    let (response, written) = talk.draft.begin()?;
    if !loaded.gives() {
        return Ok(whole(response, written));
    }
    let body = body::Body::new(services, route, controller, written, talk);
    Ok(response.body(Body::Stream(Box::new(body))))
}
