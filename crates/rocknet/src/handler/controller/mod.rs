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
mod draft;
mod image;
pub mod isolated;
mod load;
mod talk;
mod trouble;

use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::model::{self, RunOn, Settings};
use rocknet_controller::host::{self, State, Went};

use self::asked::{Here, Kept};
use self::draft::Draft;
use self::talk::{Step, Talk};
use self::trouble::Trouble;
use crate::exchange::{Exchange, RequestContent};
use crate::handler::{Answering, Handler, OnTheSpot};
use crate::response::{Body, Response};
use crate::route::Route;
use crate::services::Services;

pub use self::asked::Origin;
pub use self::load::{Libraries, LoadError};

/// Content that a controller is given whole. All of it is held, for as many requests as come at once; what is larger is
/// taken in pieces.
const MAX_CONTENT: usize = 1024 * 1024;

/// The controller of a route.
pub struct Controller {
    /// As it is written, for the log.
    name: Arc<str>,
    place: Place,
}

/// Where it runs.
enum Place {
    /// On the thread of the connection.
    Network(host::Controller),
    /// In the pool.
    Worker(host::Controller),
    /// In a process of its own.
    Process(isolated::Controller),
}

impl Controller {
    /// The one that settings name, its library loaded.
    pub fn new(wanted: &model::Controller, settings: &Settings, libraries: &Libraries) -> Result<Controller, String> {
        let told = |error: LoadError| {
            let at = settings.places.get("controller");
            let at = at.map_or(String::new(), |place| {
                format!("{}:{}: ", place.file.display(), place.line)
            });
            format!("{at}`controller = \"{wanted}\"`: {error}")
        };
        let place = match (settings.isolate, settings.run_on) {
            (true, _) => libraries.isolated(wanted).map(Place::Process),
            (false, RunOn::Network) => libraries.controller(wanted).map(Place::Network),
            (false, RunOn::Worker) => libraries.controller(wanted).map(Place::Worker),
        };
        Ok(Controller {
            name: wanted.to_string().into(),
            place: place.map_err(told)?,
        })
    }

    /// Answers where that needs no wait, and nothing that outlives this call.
    fn answer_now(&self, asked: &OnTheSpot<'_>) -> Option<Response> {
        let Place::Network(loaded) = &self.place else {
            return None;
        };
        if loaded.takes() || loaded.gives() || asked.has_body {
            return None;
        }
        let origin = Origin::new(asked.client, asked.secure, asked.user);
        let asked = Here::new(*asked.request, asked.path, &[], origin);
        let (mut draft, mut state) = (Draft::new(&*self.name), State::default());
        let went = loaded.answer(&asked, &mut draft, &mut state);
        let answer = went.map_err(Trouble::Failed).and_then(|_| draft.begin());
        Some(match answer {
            Ok((response, written)) => whole(response, written),
            Err(trouble) => trouble.tell(&self.name),
        })
    }
}

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
    fn answer_now(&self, asked: &OnTheSpot<'_>) -> Option<Response> {
        self.0.answer_now(asked)
    }

    /// Answers in as many calls as it takes.
    fn answer(&self, exchange: Exchange) -> Answering {
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

impl Controller {
    async fn run(
        &self,
        services: &Services,
        route: &Route,
        talk: Box<Talk>,
        step: Step,
    ) -> Result<(Box<Talk>, Went), Trouble> {
        let (talk, went) = self.on(services, route, talk, move |talk| talk.step(&step)).await?;
        Ok((talk, went.map_err(Trouble::Failed)?))
    }

    /// Works where this controller runs.
    async fn on<T: Send + 'static>(
        &self,
        services: &Services,
        route: &Route,
        mut talk: Box<Talk>,
        work: impl FnOnce(&mut Talk) -> T + Send + 'static,
    ) -> Result<(Box<Talk>, T), Trouble> {
        if let Place::Network(_) = self.place {
            let done = work(&mut talk);
            return Ok((talk, done));
        }
        let job = services.pool.spawn(route.priority, move || {
            let done = work(&mut talk);
            (talk, done)
        });
        job.await.map_err(Trouble::Pool)
    }
}

fn whole(mut response: Response, written: Vec<u8>) -> Response {
    if !written.is_empty() {
        response.body = Body::Bytes(written.into());
    }
    response
}

async fn try_answer(
    services: Rc<Services>,
    controller: Arc<Controller>,
    loaded: host::Controller,
    exchange: Exchange,
) -> Result<Response, Trouble> {
    let Exchange {
        request,
        mut content,
        path,
        route,
        client,
        secure,
        user,
        ..
    } = exchange;
    let asked = Kept::new(request, path, &Origin::new(client, secure.as_deref(), user.as_deref()));
    let takes = loaded.takes();
    let collected = if takes {
        Vec::new()
    } else {
        collect(&mut content).await?
    };
    let talk = Talk::new(&loaded, asked, collected, Draft::new(Arc::clone(&controller.name)));
    let (mut talk, mut went) = controller.run(&services, &route, Box::new(talk), Step::Answer).await?;
    let mut is_at_end = !takes;
    while !is_at_end && went == Went::On {
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

async fn collect(content: &mut RequestContent) -> Result<Vec<u8>, Trouble> {
    let mut all = Vec::new();
    while let Some(chunk) = content.chunk().await.map_err(Trouble::Content)? {
        if all.len() + chunk.len() > MAX_CONTENT {
            return Err(Trouble::TooLarge);
        }
        all.extend_from_slice(&chunk);
    }
    Ok(all)
}
