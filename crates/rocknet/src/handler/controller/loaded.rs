//! A controller with its loaded library and its place of execution.

use std::sync::Arc;

use rocknet_config::model::{self, RunOn, Settings};
use rocknet_controller::host::{self, Progress, RequestState};

use super::buffered_body::with_body;
use super::call::{CallStep, ControllerCall};
use super::error::ControllerError;
use super::isolated;
use super::libraries::{Libraries, LoadError};
use super::request_view::{RequestOrigin, RequestView};
use super::response_builder::ResponseBuilder;
use crate::handler::ExchangeRef;
use crate::response::Response;
use crate::route::Route;
use crate::services::Services;

/// The controller of a route.
pub struct LoadedController {
    /// Name as configured, for the log.
    pub name: Arc<str>,
    /// Place of execution.
    pub mode: RunMode,
}

/// Place of execution of a controller.
pub enum RunMode {
    /// On the thread of the connection: `run_on = "network"`.
    Network(host::LoadedController),
    /// On a thread of the blocking pool: `run_on = "worker"`.
    Worker(host::LoadedController),
    /// In a separate process: `isolate = true`.
    Process(isolated::IsolatedController),
}

impl LoadedController {
    /// Loads the library of a configured controller.
    ///
    /// # Errors
    ///
    /// The message has the line of the configuration and the reason.
    pub fn new(
        configured: &model::Controller,
        settings: &Settings,
        libraries: &Libraries,
    ) -> Result<LoadedController, String> {
        let with_location = |error: LoadError| {
            let at = settings.key_spans.get("controller");
            let at = at.map_or(String::new(), |place| {
                format!("{}:{}: ", place.file.display(), place.line)
            });
            format!("{at}`controller = \"{configured}\"`: {error}")
        };
        let mode = match (settings.isolate, settings.run_on) {
            (true, _) => libraries.isolated(configured).map(RunMode::Process),
            (false, RunOn::Network) => libraries.in_process(configured).map(RunMode::Network),
            (false, RunOn::Worker) => libraries.in_process(configured).map(RunMode::Worker),
        };
        Ok(LoadedController {
            name: configured.to_string().into(),
            mode: mode.map_err(with_location)?,
        })
    }

    /// Handles the request if this requires neither waiting nor state that outlives this call. Otherwise returns
    /// `None`.
    pub fn handle_now(&self, request: &ExchangeRef<'_>) -> Option<Response> {
        let RunMode::Network(loaded) = &self.mode else {
            return None;
        };
        // A request or response body in pieces requires several calls, and receiving a request body may require
        // waiting.
        if loaded.takes() || loaded.gives() || request.has_body {
            return None;
        }
        let origin = RequestOrigin::new(request.client, request.tls, request.user);
        let request = RequestView::new(*request.request, request.path, &[], origin);
        let (mut response, mut state) = (ResponseBuilder::new(&*self.name), RequestState::default());
        let progress = loaded.answer(&request, &mut response, &mut state);
        let answer = progress
            .map_err(ControllerError::Failed)
            .and_then(|_| response.finish_head());
        Some(match answer {
            Ok((response, written)) => with_body(response, written),
            Err(error) => error.to_response(&self.name),
        })
    }

    /// Makes one call, on this thread or in the pool, as [`LoadedController::dispatch`] does.
    pub async fn step(
        &self,
        services: &Services,
        route: &Route,
        call: Box<ControllerCall>,
        step: CallStep,
    ) -> Result<(Box<ControllerCall>, Progress), ControllerError> {
        let (call, progress) = self
            .dispatch(services, route, call, move |call| call.step(&step))
            .await?;
        Ok((call, progress.map_err(ControllerError::Failed)?))
    }

    /// Runs `work` where the controller runs: on this thread, or in the pool. Not used for a controller in a separate
    /// process.
    pub async fn dispatch<T: Send + 'static>(
        &self,
        services: &Services,
        route: &Route,
        mut call: Box<ControllerCall>,
        work: impl FnOnce(&mut ControllerCall) -> T + Send + 'static,
    ) -> Result<(Box<ControllerCall>, T), ControllerError> {
        if let RunMode::Network(_) = self.mode {
            let done = work(&mut call);
            return Ok((call, done));
        }
        let job = services.pool.spawn(route.priority, move || {
            let done = work(&mut call);
            (call, done)
        });
        job.await.map_err(ControllerError::Pool)
    }
}
