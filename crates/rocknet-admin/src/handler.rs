//! Handler of the API: finds the endpoint, reads the body, and renders the reply.

use std::sync::Arc;

use rocknet_control::api::{
    ApiError, ENDPOINTS, EVENT_STREAM, Endpoint, Input, JSON, MAX_REQUEST_BODY, OPEN_API, OPEN_METRICS, Permission,
    Reply, Request,
};
use rocknet_handler::exchange::{Client, Exchange, RequestBody};
use rocknet_handler::response::{Body, ErrorPage, Response, Stream};
use rocknet_handler::{Handler, HandlerFuture, respond_with};
use rocknet_proto::{KnownField, Status};

use crate::tokens::{Failures, Tokens};
use crate::{Control, guard, metrics_text};

/// Responds to the requests of the API.
pub struct AdminHandler<C> {
    shared: Arc<Shared<C>>,
}

struct Shared<C> {
    control: C,
    tokens: Option<Tokens>,
    failures: Failures,
}

impl<C: Control> AdminHandler<C> {
    /// Creates the handler. `control` executes the requests. `tokens` admit requests that arrive over TCP; without
    /// them, only requests over a Unix socket are admitted.
    pub fn new(control: C, tokens: Option<Tokens>) -> AdminHandler<C> {
        AdminHandler {
            shared: Arc::new(Shared {
                control,
                tokens,
                failures: Failures::default(),
            }),
        }
    }
}

impl<C: Control> Handler for AdminHandler<C> {
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        let shared = Arc::clone(&self.shared);
        let wants_text = metrics_text::is_preferred(exchange.request.view().fields.by_name(b"accept"));
        respond_with(async move {
            match shared.reply(exchange).await {
                Ok(Content::Reply(Reply::Metrics(text))) if wants_text => {
                    let text = metrics_text::from_open_metrics(&text);
                    with_type(Status::OK, metrics_text::PROMETHEUS_TEXT, text.into_bytes())
                }
                Ok(Content::Reply(Reply::Metrics(text))) => with_type(Status::OK, OPEN_METRICS, text.into_bytes()),
                Ok(Content::Reply(Reply::OpenApi(text))) => with_type(Status::OK, JSON, text.into()),
                Ok(Content::Reply(reply)) => json(Status::OK, &reply),
                Ok(Content::Events(stream)) => {
                    let mut response = with_type(Status::OK, EVENT_STREAM, Vec::new());
                    response.body = Body::Stream(stream);
                    response
                }
                Err(Rejected { error, allow }) => {
                    let status = Status::new(error.status).unwrap_or(Status::INTERNAL_SERVER_ERROR);
                    let response = json(status, &error);
                    match allow {
                        Some(allow) => response.with("Allow", allow),
                        None if status.code() == 401 => response.with("WWW-Authenticate", "Bearer"),
                        None => response,
                    }
                }
            }
        })
    }

    fn may_take_long(&self) -> bool {
        false
    }
}

/// Content of a successful response.
enum Content {
    Reply(Reply),
    /// Server-sent events.
    Events(Box<dyn Stream>),
}

/// Error of a request. `allow`: the methods of the path, for 405.
struct Rejected {
    error: ApiError,
    allow: Option<String>,
}

impl From<ApiError> for Rejected {
    fn from(error: ApiError) -> Rejected {
        Rejected { error, allow: None }
    }
}

impl<C: Control> Shared<C> {
    async fn reply(&self, mut exchange: Exchange) -> Result<Content, Rejected> {
        let request = exchange.request.view();
        let method = exchange.request.view().method.as_str().unwrap_or_default();
        guard::check(&request, !exchange.body.is_empty())?;
        let permission = self.permission(&exchange)?;
        let endpoint = find(method, &exchange.path)?;
        if permission < endpoint.permission {
            return Err(ApiError::new(403, "this token does not permit this request").into());
        }
        let body = read(&mut exchange.body).await?;
        let input = Input {
            query: exchange.request.view().query.unwrap_or_default(),
            body: &body,
        };
        match endpoint.parse(&input)? {
            Request::Logs(filter) => Ok(Content::Events(self.control.follow_logs(filter))),
            Request::OpenApi => Ok(Content::Reply(Reply::OpenApi(OPEN_API))),
            request => Ok(Content::Reply(self.control.execute(request).await?)),
        }
    }

    /// Returns the permission of the client. A client of the Unix socket has every permission, because the file system
    /// has admitted it.
    fn permission(&self, exchange: &Exchange) -> Result<Permission, ApiError> {
        if exchange.peer == Client::Local {
            return Ok(Permission::Full);
        }
        let authorization = exchange.request.view().fields.get(KnownField::Authorization);
        let tokens = self.tokens.as_ref();
        tokens
            .zip(authorization)
            .and_then(|(tokens, value)| tokens.permission(value))
            .ok_or_else(|| self.failures.count(exchange.services.clock.uptime_ms()))
    }
}

fn find(method: &str, path: &str) -> Result<&'static Endpoint, Rejected> {
    let mut allow = Vec::new();
    for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.path == path) {
        if endpoint.method.name() == method {
            return Ok(endpoint);
        }
        allow.push(endpoint.method.name());
    }
    if allow.is_empty() {
        return Err(ApiError::new(404, "there is no such endpoint").into());
    }
    Err(Rejected {
        error: ApiError::new(405, "the endpoint does not support this method"),
        allow: Some(allow.join(", ")),
    })
}

async fn read(body: &mut RequestBody) -> Result<Vec<u8>, ApiError> {
    let mut all = Vec::new();
    loop {
        match body.chunk().await {
            Ok(Some(chunk)) if all.len() + chunk.len() <= MAX_REQUEST_BODY => all.extend_from_slice(&chunk),
            Ok(Some(_)) => {
                return Err(ApiError::new(
                    413,
                    format!("the body is larger than {MAX_REQUEST_BODY} bytes"),
                ));
            }
            Ok(None) => return Ok(all),
            Err(error) => {
                let status = error.status();
                return Err(ApiError::new(status.code(), status.reason()));
            }
        }
    }
}

fn json(status: Status, value: &impl serde::Serialize) -> Response {
    with_type(status, JSON, serde_json::to_vec(value).unwrap_or_default())
}

fn with_type(status: Status, media_type: &str, body: Vec<u8>) -> Response {
    let mut response = Response::new(status)
        .with("Content-Type", media_type)
        .with("Cache-Control", "no-store")
        .with("X-Content-Type-Options", "nosniff")
        .body(body);
    response.error_page = ErrorPage::Never;
    response
}
