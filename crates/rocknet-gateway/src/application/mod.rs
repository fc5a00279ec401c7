//! Handler of applications that speak FastCGI, SCGI or uwsgi. All requests of a route go to its applications.
//!
//! ```text
//! Exchange ─▶ group.rs: selects an application ─▶ request.rs: variables in the protocol of the application
//!                                                │
//!                     Response ◀─ gateway/exchange.rs ⇄ a connection of gateway/backend.rs
//! ```

mod group;
mod hint;
mod request;

use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::model::Protocol;
use rocknet_io::wheel::Wheel;
use rocknet_proto::cgi::StatusLine;

use self::group::MAX_TRIES;

pub use self::group::ApplicationGroup;
use crate::gateway::error::BackendError;
use crate::gateway::exchange::BackendExchange;
use crate::gateway::request::BackendRequest;
use crate::gateway::response::build_response;
use crate::gateway::stderr::StderrLog;
use rocknet_handler::exchange::{Exchange, RequestBody};
use rocknet_handler::response::Response;
use rocknet_handler::route::Route;
use rocknet_handler::services::Services;
use rocknet_handler::{Handler, HandlerFuture};

/// Handler that sends requests to the applications of a route.
pub struct ApplicationHandler(Arc<ApplicationGroup>);

impl ApplicationHandler {
    /// Creates a handler for the group.
    pub fn new(group: ApplicationGroup) -> ApplicationHandler {
        ApplicationHandler(Arc::new(group))
    }
}

impl Handler for ApplicationHandler {
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        let group = Arc::clone(&self.0);
        Box::pin(async move {
            let (services, route) = (Rc::clone(&exchange.services), Arc::clone(&exchange.route));
            let mut tried = Vec::new();
            match try_handle(&services, &group, exchange, &route.label.site, &mut tried).await {
                Ok(response) => response,
                Err(error) => hint::error_response(&error, &group, tried.last().copied(), &route.label),
            }
            .into()
        })
    }

    fn timeout_ticks(&self, wheel: &Wheel, route: &Route) -> u32 {
        self.0.timeout_ticks(wheel, route.answer_timeout)
    }

    fn timeout_limits(&self) -> &'static str {
        "limits.answer_timeout after `connect` of the application"
    }

    fn buffers_request_body(&self) -> bool {
        true
    }

    fn supports_accel_redirect(&self) -> bool {
        true
    }
}

/// Sends the request and returns the response. Adds the number of each application that was tried to `tried`.
async fn try_handle(
    services: &Rc<Services>,
    group: &ApplicationGroup,
    exchange: Exchange,
    site: &str,
    tried: &mut Vec<usize>,
) -> Result<Response, BackendError> {
    let mut received = BackendRequest::receive(exchange).await?;
    let (body, length) = (received.take_body(), received.body_length);
    let (view, context) = (received.exchange.request.view(), received.context());
    let path = &received.exchange.path;
    let write_request = || request::write(group, &view, path, &context, length).map_err(BackendError::Request);
    let mut written = write_request()?;

    let ticks = received.response_ticks();
    let deadline = services.wheel.deadline();
    // An application may close an idle connection at any moment, so only requests that may be repeated use one. These
    // have no body.
    let repeatable = received.is_repeatable();
    let stderr_log = || StderrLog::new(group.protocol.key(), site, path);
    let now_ms = || services.clock.uptime_ms();
    let (number, connection) = loop {
        let number = group.choose(tried, now_ms(), || services.random());
        tried.push(number);
        let backend = group.member(number);
        backend.begin(now_ms(), group.rules);
        if let Some(connection) = (repeatable && group.keep > 0).then(|| backend.take_idle()).flatten() {
            deadline.set(ticks);
            // Only connections of FastCGI are kept: SCGI and uwsgi use a new connection for each request.
            let backend_exchange =
                BackendExchange::fastcgi(services, connection, std::mem::take(&mut written), stderr_log());
            let backend_exchange = backend_exchange.keep_alive(backend, group.keep);
            match backend_exchange
                .run_until_head(RequestBody::empty(), &deadline, ticks)
                .await
            {
                Err(BackendError::StaleConnection) => written = write_request()?,
                exchange_result => {
                    let response = exchange_result.and_then(|backend_exchange| {
                        build_response(backend_exchange, view.method, StatusLine::Refused)
                    });
                    group.record_result(number, now_ms(), response.as_ref().err());
                    return response;
                }
            }
        }
        let has_others = tried.len() < group.count().min(MAX_TRIES);
        // Only a single application is retried here. Otherwise the next application is tried.
        let connection = backend.connect(services, group.connect, group.count() == 1);
        match connection.await {
            Ok(connection) => break (number, connection),
            Err(error) if has_others && error.is_before_send() => {
                group.record_result(number, now_ms(), Some(&error));
                hint::log(&error, group, number, site);
            }
            Err(error) => {
                group.record_result(number, now_ms(), Some(&error));
                return Err(error);
            }
        }
    };
    deadline.set(ticks);
    let (backend_exchange, line) = match group.protocol {
        Protocol::FastCgi => (
            BackendExchange::fastcgi(services, connection, written, stderr_log())
                .keep_alive(group.member(number), group.keep),
            StatusLine::Refused,
        ),
        // uWSGI and some SCGI applications begin a response with an HTTP status line.
        Protocol::Scgi | Protocol::Uwsgi => (
            // `u64::MAX`: the response may have any length.
            BackendExchange::plain(services, connection, written, u64::MAX, stderr_log()),
            StatusLine::Allowed,
        ),
    };
    let exchange_result = backend_exchange.run_until_head(body, &deadline, ticks).await;
    let response = exchange_result.and_then(|backend_exchange| build_response(backend_exchange, view.method, line));
    group.record_result(number, now_ms(), response.as_ref().err());
    response
}
