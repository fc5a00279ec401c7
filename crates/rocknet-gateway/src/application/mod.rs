//! Applications that answer by FastCGI, SCGI or uwsgi: each is asked for everything at its place.
//!
//! ```text
//! Exchange ─▶ group.rs: which of several ─▶ request.rs: its variables, in the application's protocol
//!                                                │
//!                     Response ◀─ gateway/conversation.rs ⇄ one of gateway/backend.rs
//! ```

mod cure;
mod group;
mod request;

use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::model::Protocol;
use rocknet_io::wheel::Wheel;
use rocknet_proto::cgi::StatusLine;

use self::group::MAX_TRIES;

pub use self::group::Application;
use crate::gateway::answer as gateway_answer;
use crate::gateway::complaints::Complaints;
use crate::gateway::conversation::Conversation;
use crate::gateway::request::BackendRequest;
use crate::gateway::trouble::Trouble;
use rocknet_handler::exchange::{Exchange, RequestBody};
use rocknet_handler::response::Response;
use rocknet_handler::route::Route;
use rocknet_handler::services::Services;
use rocknet_handler::{Handler, HandlerFuture};

/// The applications of a route as a handler.
pub struct ApplicationHandler(Arc<Application>);

impl ApplicationHandler {
    pub fn new(application: Application) -> ApplicationHandler {
        ApplicationHandler(Arc::new(application))
    }
}

impl Handler for ApplicationHandler {
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        let application = Arc::clone(&self.0);
        Box::pin(async move {
            let (services, route) = (Rc::clone(&exchange.services), Arc::clone(&exchange.route));
            let mut tried = Vec::new();
            match try_answer(&services, &application, exchange, &route.label.site, &mut tried).await {
                Ok(response) => response,
                Err(trouble) => cure::tell(&trouble, &application, tried.last().copied(), &route.label),
            }
            .into()
        })
    }

    fn timeout_ticks(&self, wheel: &Wheel, route: &Route) -> u32 {
        self.0.patience(wheel, route.answer_timeout)
    }

    fn buffers_request_body(&self) -> bool {
        true
    }

    fn supports_accel_redirect(&self) -> bool {
        true
    }
}

/// `tried`: those that were asked, by their number.
async fn try_answer(
    services: &Rc<Services>,
    application: &Application,
    exchange: Exchange,
    site: &str,
    tried: &mut Vec<usize>,
) -> Result<Response, Trouble> {
    let mut received = BackendRequest::receive(exchange).await?;
    let (content, length) = (received.take_body(), received.body_length);
    let (view, place) = (received.exchange.request.view(), received.place());
    let path = &received.exchange.path;
    let asked = || request::write(application, &view, path, &place, length).map_err(Trouble::Request);
    let mut written = asked()?;

    let ticks = received.response_ticks();
    let deadline = services.wheel.deadline();
    let repeatable = received.is_repeatable();
    let complaints = || Complaints::new(application.protocol.key(), site, path);
    let now_ms = || services.clock.uptime_ms();
    let (number, connected) = loop {
        let number = application.choose(tried, now_ms(), || services.random());
        tried.push(number);
        let backend = application.member(number);
        backend.begin(now_ms(), application.rules);
        if let Some(connected) = (repeatable && application.keep > 0).then(|| backend.kept()).flatten() {
            deadline.set(ticks);
            let conversation =
                Conversation::by_records(services, connected, std::mem::take(&mut written), complaints());
            let conversation = conversation.kept_by(backend, application.keep);
            match conversation.hold(RequestBody::empty(), &deadline, ticks).await {
                Err(Trouble::Unheard) => written = asked()?,
                held => {
                    let answer = held.and_then(|held| gateway_answer::response(held, view.method, StatusLine::Refused));
                    application.heard(number, now_ms(), answer.as_ref().err());
                    return answer;
                }
            }
        }
        let has_others = tried.len() < application.count().min(MAX_TRIES);
        let connected = backend.connect(services, application.connect, application.count() == 1);
        match connected.await {
            Ok(connected) => break (number, connected),
            Err(trouble) if has_others && trouble.is_before_all() => {
                application.heard(number, now_ms(), Some(&trouble));
                cure::log(&trouble, application, number, site);
            }
            Err(trouble) => {
                application.heard(number, now_ms(), Some(&trouble));
                return Err(trouble);
            }
        }
    };
    deadline.set(ticks);
    let (conversation, line) = match application.protocol {
        Protocol::FastCgi => (
            Conversation::by_records(services, connected, written, complaints())
                .kept_by(application.member(number), application.keep),
            StatusLine::Refused,
        ),
        Protocol::Scgi | Protocol::Uwsgi => (
            Conversation::plain(services, connected, written, u64::MAX, complaints()),
            StatusLine::Allowed,
        ),
    };
    let held = conversation.hold(content, &deadline, ticks).await;
    let answer = held.and_then(|held| gateway_answer::response(held, view.method, line));
    application.heard(number, now_ms(), answer.as_ref().err());
    answer
}
