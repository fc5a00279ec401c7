//! The dashboard: pages for browsers on the same address as the API, with sessions in place of tokens.
//!
//! A page is rendered by the server with its data. Its scripts replace the data without loading the page again, and
//! give instructions by requests to the API with the cookie of the session.

mod assets;
mod feed;
mod pages;
mod samples;
mod session;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use rocknet_control::api::{ApiError, EVENT_STREAM, Permission};
use rocknet_control::dashboard::DashboardLink;
use rocknet_handler::exchange::Exchange;
use rocknet_handler::response::{Body, Response};
use rocknet_proto::Status;
use rocknet_proto::request::Request;
use serde::Deserialize;
use serde_json::json as value;

use crate::Control;
use crate::content::{self, failed, json, with_type};
use crate::guard::{DASHBOARD_HOST, Origin};
use crate::tokens::{Failures, Tokens};
use feed::{SharedSamples, StatusFeed};
pub use pages::PageKind;
use session::Sessions;

/// `Content-Security-Policy` of every page. Scripts, styles and connections are those of the dashboard itself, and no
/// other page may embed it.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                                       connect-src 'self'; form-action 'self'; base-uri 'none'; \
                                       frame-ancestors 'none'";

/// State of the dashboard, which all handlers of a server share.
#[derive(Default)]
pub struct Dashboard {
    sessions: Arc<Sessions>,
    samples: Arc<SharedSamples>,
    /// Address at which the dashboard is served.
    address: OnceLock<SocketAddr>,
    /// Path of the folder with scripts and styles.
    assets: OnceLock<String>,
}

/// A request of the dashboard that the guard has accepted.
pub struct DashboardRequest<'r> {
    pub exchange: &'r Exchange,
    pub origin: Origin,
    pub body: &'r [u8],
    pub tokens: Option<&'r Tokens>,
    pub failures: &'r Failures,
}

/// Body of a request that begins a session: one of the two.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    /// Token of the server.
    token: Option<String>,
    /// Code of a link.
    code: Option<String>,
}

/// Session of a request.
struct Visitor<'r> {
    secret: &'r str,
    permission: Permission,
}

impl Dashboard {
    /// Creates the state without sessions.
    pub fn new() -> Arc<Dashboard> {
        Arc::new(Dashboard::default())
    }

    /// Records the address at which the dashboard is served.
    pub fn listens_at(&self, address: SocketAddr) {
        // The address is set once, when the server has bound it.
        let _ = self.address.set(address);
    }

    /// Creates a link that signs a browser in.
    ///
    /// # Errors
    ///
    /// Status 404 if the dashboard is not served.
    pub(crate) fn link(&self) -> Result<DashboardLink, ApiError> {
        let Some(address) = self.address.get() else {
            let message = "this server has no dashboard: set `listen = \"127.0.0.1:7625\"` below [admin], and start the \
                           server again";
            return Err(ApiError::new(404, message));
        };
        let code = self.sessions.create_link(Instant::now()).ok_or_else(no_random)?;
        let port = address.port();
        Ok(DashboardLink {
            // The code is in the fragment, which browsers neither send to servers nor in the field `Referer`.
            url: format!("http://{DASHBOARD_HOST}:{port}/login#{code}"),
            lifetime_s: session::LINK_LIFETIME.as_secs(),
        })
    }

    /// Returns the permission of the session that a request belongs to.
    pub(crate) fn permission(&self, request: &Request<'_>, now: Instant) -> Option<Permission> {
        let secret = session::secret_in(request.fields.by_name(b"cookie"))?;
        self.sessions.permission(secret, now)
    }

    /// Returns the page of a request that the guard has rejected.
    pub(crate) fn refused(&self, error: &ApiError) -> Response {
        self.html(content::status(error.status), pages::refused(self.assets(), error))
    }

    /// Responds to a request.
    pub(crate) async fn respond<C: Control>(
        &self,
        page: PageKind,
        request: &DashboardRequest<'_>,
        control: &C,
    ) -> Response {
        let exchange = request.exchange;
        let view = exchange.request.view();
        let method = view.method.as_str().unwrap_or_default();
        if !page.methods().contains(&method) {
            let error = ApiError::new(405, "the page does not support this method");
            return failed(&error).with("Allow", page.methods().join(", "));
        }
        let secret = session::secret_in(view.fields.by_name(b"cookie"));
        let visitor = secret.and_then(|secret| {
            let permission = self.sessions.permission(secret, Instant::now())?;
            Some(Visitor { secret, permission })
        });
        match (page, visitor) {
            (PageKind::Asset, _) => match assets::find(&exchange.path) {
                Some(asset) => asset.response(&exchange.path, self.assets()),
                None => failed(&ApiError::new(404, "there is no such file")),
            },
            (PageKind::Login, _) if method == "POST" => self.login(request),
            (PageKind::Login, _) => self.html(Status::OK, pages::login(self.assets())),
            (PageKind::Logout, visitor) => {
                if let Some(visitor) = visitor {
                    self.sessions.end(visitor.secret, Instant::now());
                }
                json(Status::OK, &value!({ "message": "signed out" })).with("Set-Cookie", session::clear_cookie())
            }
            (PageKind::Events, Some(visitor)) if request.origin == Origin::Own => {
                match StatusFeed::open(
                    &self.sessions,
                    &self.samples,
                    control,
                    visitor.secret,
                    &exchange.services,
                ) {
                    Ok(feed) => with_type(Status::OK, EVENT_STREAM, Body::Stream(Box::new(feed))),
                    Err(error) => failed(&error),
                }
            }
            (PageKind::Events, _) => failed(&ApiError::new(401, "the page is not signed in")),
            (_, None) => Response::new(Status::SEE_OTHER)
                .with("Location", "/login")
                .with("Cache-Control", "no-store"),
            (page, Some(visitor)) => {
                let query = view.query.unwrap_or_default();
                let (status, text) = pages::render(page, query, visitor.permission, self.assets(), control).await;
                self.html(status, text)
            }
        }
    }

    /// Begins a session for a token or for the code of a link.
    fn login(&self, request: &DashboardRequest<'_>) -> Response {
        let login: Login = match serde_json::from_slice(request.body) {
            Ok(login) => login,
            Err(error) => return failed(&ApiError::new(400, format!("the body is not valid: {error}"))),
        };
        let now = Instant::now();
        let (permission, message) = match (&login.token, &login.code) {
            (Some(token), None) => {
                let header = format!("Bearer {}", token.trim());
                let permission = request.tokens.and_then(|tokens| tokens.permission(header.as_bytes()));
                (permission, "this is not a token of this server")
            }
            (None, Some(code)) => {
                let is_valid = self.sessions.use_link(code, now);
                let message = "this link has expired or was used already: type `rocknet dashboard` for another one";
                (is_valid.then_some(Permission::Full), message)
            }
            _ => return failed(&ApiError::new(400, "the body needs either a token or a code")),
        };
        let Some(permission) = permission else {
            let error = request.failures.count(request.exchange.services.clock.uptime_ms());
            return failed(&match error.status {
                401 => ApiError::new(401, message),
                _ => error,
            });
        };
        match self.sessions.begin(permission, now) {
            Some(secret) => {
                json(Status::OK, &value!({ "message": "signed in" })).with("Set-Cookie", session::set_cookie(&secret))
            }
            None => failed(&no_random()),
        }
    }

    /// Returns the path of the folder with scripts and styles.
    fn assets(&self) -> &str {
        self.assets.get_or_init(assets::folder)
    }

    fn html(&self, status: Status, text: String) -> Response {
        with_type(status, "text/html; charset=utf-8", text.into_bytes())
            .with("Content-Security-Policy", CONTENT_SECURITY_POLICY)
            .with("Referrer-Policy", "no-referrer")
            .with("Cross-Origin-Opener-Policy", "same-origin")
            .with("Cross-Origin-Resource-Policy", "same-origin")
    }
}

fn no_random() -> ApiError {
    ApiError::new(500, "the system provides no random numbers")
}
