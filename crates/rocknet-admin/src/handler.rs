//! Handler of the API and of the dashboard: admits a request, finds the endpoint, reads the body, and renders the
//! reply.

use std::sync::Arc;
use std::time::Instant;

use rocknet_control::api::{
    ApiError, ENDPOINTS, EVENT_STREAM, Endpoint, GrantedPermission, Input, JSON, OPEN_API, OPEN_METRICS, Permission,
    Reply, Request,
};
use rocknet_handler::exchange::{Client, Exchange};
use rocknet_handler::response::{Body, Response, Stream};
use rocknet_handler::{Handler, HandlerFuture, respond_with};
use rocknet_proto::{KnownField, Status};

use crate::content::{failed, json, read, with_type};
use crate::dashboard::{Dashboard, DashboardRequest, PageKind};
use crate::guard::{AllowedHosts, Origin, SentContent};
use crate::heartbeat::Heartbeat;
use crate::tcp_access::TcpAccess;
use crate::{Control, guard, metrics_text};

/// Responds to requests of the API and, over TCP, also to requests of the dashboard.
pub struct AdminHandler<C> {
    shared: Arc<Shared<C>>,
}

struct Shared<C> {
    control: C,
    /// Credentials and hosts for requests over TCP; `None` at a Unix socket.
    access: Option<TcpAccess>,
    /// Allowed hosts if `access` is `None`.
    local_hosts: AllowedHosts,
    dashboard: Arc<Dashboard>,
}

impl<C: Control> AdminHandler<C> {
    /// Creates the handler. `control` executes the requests. `access` admits requests that arrive over TCP; without
    /// it, only requests over a Unix socket are admitted. All handlers of a server share the `dashboard`.
    pub fn new(control: C, access: Option<TcpAccess>, dashboard: Arc<Dashboard>) -> AdminHandler<C> {
        AdminHandler {
            shared: Arc::new(Shared {
                control,
                access,
                local_hosts: AllowedHosts::default(),
                dashboard,
            }),
        }
    }
}

impl<C: Control> Handler for AdminHandler<C> {
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        let shared = Arc::clone(&self.shared);
        let wants_text = metrics_text::is_preferred(exchange.request.view().fields.by_name(b"accept"));
        respond_with(async move {
            // Only browsers use the dashboard, and no browser connects to a Unix socket.
            if exchange.peer != Client::Local
                && let Some(page) = PageKind::of(&exchange)
            {
                return shared.page(page, exchange).await;
            }
            match shared.reply(exchange).await {
                Ok(Content::Reply(Reply::Metrics(text))) if wants_text => {
                    let text = metrics_text::from_open_metrics(&text);
                    with_type(Status::OK, metrics_text::PROMETHEUS_TEXT, text.into_bytes())
                }
                Ok(Content::Reply(Reply::Metrics(text))) => with_type(Status::OK, OPEN_METRICS, text.into_bytes()),
                Ok(Content::Reply(Reply::OpenApi(text))) => with_type(Status::OK, JSON, text.as_bytes().to_vec()),
                Ok(Content::Reply(reply)) => json(Status::OK, &reply),
                Ok(Content::Events(stream)) => with_type(Status::OK, EVENT_STREAM, Body::Stream(stream)),
                Err(Rejected { error, allow }) => {
                    let response = failed(&error);
                    match allow {
                        Some(allow) => response.with("Allow", allow),
                        // `Basic` is accepted too, but browsers would respond to it with a password dialog.
                        None if error.status == 401 => response.with("WWW-Authenticate", "Bearer"),
                        None => response,
                    }
                }
            }
        })
    }

    // A reload takes seconds, but no response of this handler has resources for early hints.
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

/// Error of a request.
struct Rejected {
    error: ApiError,
    /// Value of the field `Allow`: the methods of the endpoint. `None` unless the status is 405.
    allow: Option<String>,
}

impl From<ApiError> for Rejected {
    fn from(error: ApiError) -> Rejected {
        Rejected { error, allow: None }
    }
}

impl<C: Control> Shared<C> {
    fn hosts(&self) -> &AllowedHosts {
        self.access.as_ref().map_or(&self.local_hosts, |access| &access.hosts)
    }

    /// Responds to a request of the dashboard.
    async fn page(&self, page: PageKind, mut exchange: Exchange) -> Response {
        let content = SentContent::new(!exchange.body.is_empty(), page.takes_form());
        let view = exchange.request.view();
        let checked = match page.takes_links() {
            true => guard::check_page(&view, content, self.hosts()),
            false => guard::check(&view, content, self.hosts()),
        };
        let origin = match checked {
            Ok(origin) => origin,
            Err(error) => return self.dashboard.refused(&error),
        };
        let body = match read(&mut exchange.body).await {
            Ok(body) => body,
            Err(error) => return failed(&error),
        };
        let request = DashboardRequest {
            exchange: &exchange,
            origin,
            body: &body,
            access: self.access.as_ref(),
        };
        self.dashboard.respond(page, &request, &self.control).await
    }

    /// Executes a request of the API.
    async fn reply(&self, mut exchange: Exchange) -> Result<Content, Rejected> {
        let request = exchange.request.view();
        let method = exchange.request.view().method.as_str().unwrap_or_default();
        // `false`: the API accepts no forms.
        let content = SentContent::new(!exchange.body.is_empty(), false);
        let origin = guard::check(&request, content, self.hosts())?;
        let permission = self.permission(&exchange, origin).await?;
        let endpoint = find(method, &exchange.path)?;
        if permission < endpoint.permission {
            return Err(ApiError::new(403, "the read token does not permit this request").into());
        }
        let body = read(&mut exchange.body).await?;
        let input = Input {
            query: exchange.request.view().query.unwrap_or_default(),
            body: &body,
        };
        match endpoint.parse(&input)? {
            Request::Logs(filter) => {
                let lines = self.control.follow_logs(filter)?;
                Ok(Content::Events(Box::new(Heartbeat::new(lines, &exchange.services))))
            }
            Request::DashboardLink => Ok(Content::Reply(Reply::DashboardLink(self.dashboard.link()?))),
            Request::Permission => Ok(Content::Reply(Reply::Permission(GrantedPermission { permission }))),
            Request::OpenApi => Ok(Content::Reply(Reply::OpenApi(OPEN_API))),
            request => Ok(Content::Reply(self.control.execute(request).await?)),
        }
    }

    /// Returns the permission of the client. A client of the Unix socket has every permission, because the file system
    /// has admitted it.
    async fn permission(&self, exchange: &Exchange, origin: Origin) -> Result<Permission, ApiError> {
        if exchange.peer == Client::Local {
            return Ok(Permission::Full);
        }
        let authorization = exchange.request.view().fields.get(KnownField::Authorization);
        let Some(access) = &self.access else {
            return Err(ApiError::new(401, "this address admits no request"));
        };
        if let Some(value) = authorization
            && let Some(permission) = access.permission(exchange, value).await?
        {
            return Ok(permission);
        }
        // A browser also sends the cookie with requests from sites at other ports of this host. The cookie counts only
        // if a page of the dashboard sent the request.
        if origin == Origin::Own
            && authorization.is_none()
            && let Some(permission) = self.dashboard.permission(&exchange.request.view(), Instant::now())
        {
            return Ok(permission);
        }
        Err(access.failures.count(exchange.services.clock.uptime_ms()))
    }
}

/// Returns the endpoint with a method and path.
///
/// # Errors
///
/// Fails with status 404 if no endpoint has the path, or 405 if an endpoint has the path but not the method.
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
