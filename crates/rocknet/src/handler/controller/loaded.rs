//! A controller with its library loaded, and where it runs.

use std::sync::Arc;

use rocknet_config::model::{self, RunOn, Settings};
use rocknet_controller::host::{self, Progress, RequestState};

use super::asked::{Here, Origin};
use super::content::whole;
use super::draft::Draft;
use super::isolated;
use super::load::{Libraries, LoadError};
use super::talk::{Step, Talk};
use super::trouble::Trouble;
use crate::handler::ExchangeRef;
use crate::response::Response;
use crate::route::Route;
use crate::services::Services;

/// The controller of a route.
pub struct Controller {
    /// As it is written, for the log.
    pub name: Arc<str>,
    pub place: Place,
}

/// Where it runs.
pub enum Place {
    /// On the thread of the connection.
    Network(host::LoadedController),
    /// In the pool.
    Worker(host::LoadedController),
    /// In a process of its own.
    Process(isolated::Controller),
}

impl Controller {
    /// The one that settings name, its library loaded.
    pub fn new(wanted: &model::Controller, settings: &Settings, libraries: &Libraries) -> Result<Controller, String> {
        let told = |error: LoadError| {
            let at = settings.key_spans.get("controller");
            let at = at.map_or(String::new(), |span| format!("{}:{}: ", span.file.display(), span.line));
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
    pub fn handle_now(&self, asked: &ExchangeRef<'_>) -> Option<Response> {
        let Place::Network(loaded) = &self.place else {
            return None;
        };
        if loaded.takes() || loaded.gives() || asked.has_body {
            return None;
        }
        let origin = Origin::new(asked.client, asked.tls, asked.user);
        let asked = Here::new(*asked.request, asked.path, &[], origin);
        let (mut draft, mut state) = (Draft::new(&*self.name), RequestState::default());
        let went = loaded.answer(&asked, &mut draft, &mut state);
        let answer = went.map_err(Trouble::Failed).and_then(|_| draft.begin());
        Some(match answer {
            Ok((response, written)) => whole(response, written),
            Err(trouble) => trouble.tell(&self.name),
        })
    }

    /// Goes one step on.
    pub async fn run(
        &self,
        services: &Services,
        route: &Route,
        talk: Box<Talk>,
        step: Step,
    ) -> Result<(Box<Talk>, Progress), Trouble> {
        let (talk, went) = self.on(services, route, talk, move |talk| talk.step(&step)).await?;
        Ok((talk, went.map_err(Trouble::Failed)?))
    }

    /// Works where this controller runs.
    pub async fn on<T: Send + 'static>(
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
