//! Handler of the API: finds the endpoint, reads the body, and renders the reply.

use std::sync::Arc;

use rocknet_control::api::{ApiError, ENDPOINTS, Endpoint, JSON, MAX_REQUEST_BODY, Reply};
use rocknet_handler::exchange::{Exchange, RequestBody};
use rocknet_handler::response::{ErrorPage, Response};
use rocknet_handler::{Handler, HandlerFuture, respond_with};
use rocknet_proto::Status;

use crate::{Control, guard};

/// Responds to the requests of the API.
pub struct AdminHandler<C> {
    control: Arc<C>,
}

impl<C: Control> AdminHandler<C> {
    /// Creates the handler. `control` executes the requests.
    pub fn new(control: C) -> AdminHandler<C> {
        AdminHandler {
            control: Arc::new(control),
        }
    }
}

impl<C: Control> Handler for AdminHandler<C> {
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        let control = Arc::clone(&self.control);
        respond_with(async move {
            match reply(&*control, exchange).await {
                Ok(reply) => json(Status::OK, &reply),
                Err(Rejected { error, allow }) => {
                    let status = Status::new(error.status).unwrap_or(Status::INTERNAL_SERVER_ERROR);
                    let response = json(status, &error);
                    match allow {
                        Some(allow) => response.with("Allow", allow),
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

async fn reply(control: &impl Control, mut exchange: Exchange) -> Result<Reply, Rejected> {
    let request = exchange.request.view();
    let method = exchange.request.view().method.as_str().unwrap_or_default();
    guard::check(&request, !exchange.body.is_empty())?;
    let endpoint = find(method, &exchange.path)?;
    let body = read(&mut exchange.body).await?;
    let request = endpoint.parse(&body)?;
    Ok(control.execute(request).await?)
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
    let body = serde_json::to_vec(value).unwrap_or_default();
    let mut response = Response::new(status)
        .with("Content-Type", JSON)
        .with("Cache-Control", "no-store")
        .with("X-Content-Type-Options", "nosniff")
        .body(body);
    response.error_page = ErrorPage::Never;
    response
}
