//! The dashboard: pages for browsers on the same address as the API, with sessions in place of tokens.
//!
//! The server renders each page with its data. Scripts then update the data in place, and change the server through
//! API requests that carry the session cookie.

mod arrival;
mod assets;
mod feed;
mod figures;
mod frame;
mod instruction;
mod new_user;
mod new_website;
mod notice;
mod pages;
mod session;
mod site_form;

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
use crate::guard::{AllowedHosts, DASHBOARD_HOST, Origin};
use crate::tcp_access::TcpAccess;
use feed::{SharedSamples, StatusFeed};
pub use frame::PageKind;
use frame::{parameter, prefers_pages};
use instruction::Outcome;
use notice::Notice;
use pages::{SentForm, Submitted};
use session::Sessions;

/// `Content-Security-Policy` of every page. Scripts, styles, connections and forms must use the dashboard's own
/// origin; images may also be `data:` URLs. No page may embed the dashboard.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                                       connect-src 'self'; form-action 'self'; base-uri 'none'; \
                                       frame-ancestors 'none'";

/// State of the dashboard, which all handlers of a server share.
#[derive(Default)]
pub struct Dashboard {
    sessions: Arc<Sessions>,
    samples: Arc<SharedSamples>,
    /// URL of the dashboard without a path, such as `http://rocknet.localhost:7625`.
    url: OnceLock<String>,
    /// Path of the folder with scripts and styles.
    assets: OnceLock<String>,
}

/// A request of the dashboard that the guard has accepted.
pub struct DashboardRequest<'r> {
    pub exchange: &'r Exchange,
    /// Origin of the request, as determined by the guard.
    pub origin: Origin,
    /// Whole body of the request.
    pub body: &'r [u8],
    /// Credentials of the server; `None` if the server accepts neither tokens nor a password.
    pub access: Option<&'r TcpAccess>,
}

/// Body of a sign-in request: a token or a code, but not both.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    /// Token or password of the server.
    token: Option<String>,
    /// Code of a link.
    code: Option<String>,
}

/// Visitor who is signed in, known by the secret of the session.
struct Visitor<'r> {
    secret: &'r str,
    permission: Permission,
}

impl Dashboard {
    /// Creates the state without sessions.
    pub fn new() -> Arc<Dashboard> {
        Arc::new(Dashboard::default())
    }

    /// Records that the dashboard is served at `port` to clients that address it by one of `hosts`. Links contain the
    /// first name in `hosts`. If `hosts` has no names, links contain `rocknet.localhost`, which no site has.
    pub fn listens_at(&self, port: u16, hosts: &AllowedHosts) {
        let scheme = if hosts.is_secure { "https" } else { "http" };
        let host = hosts.names.first().map_or(DASHBOARD_HOST, String::as_str);
        // The URL is set once, when the server has bound its address. Later calls change nothing.
        let _ = self.url.set(format!("{scheme}://{host}:{port}"));
    }

    /// Returns true if the dashboard is served over TLS.
    fn is_secure(&self) -> bool {
        self.url.get().is_some_and(|url| url.starts_with("https:"))
    }

    /// Creates a link that signs a browser in.
    ///
    /// # Errors
    ///
    /// Status 404 if the dashboard is not served.
    pub(crate) fn link(&self) -> Result<DashboardLink, ApiError> {
        let Some(url) = self.url.get() else {
            let message = "this server has no dashboard: set `listen = \"127.0.0.1:7625\"` below [admin], and start the \
                           server again";
            return Err(ApiError::new(404, message));
        };
        let code = self.sessions.create_link(Instant::now()).ok_or_else(no_random)?;
        Ok(DashboardLink {
            // The code is in the fragment, which browsers do not send to servers, not even in the field `Referer`.
            url: format!("{url}/login#{code}"),
            lifetime_s: session::LINK_LIFETIME.as_secs(),
        })
    }

    /// Returns the permission of the session that sent a request; `None` if the request has no valid session.
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
        let secret = session::secret_in(view.fields.by_name(b"cookie"));
        let visitor = secret.and_then(|secret| {
            let permission = self.sessions.permission(secret, Instant::now())?;
            Some(Visitor { secret, permission })
        });
        if !page.methods().contains(&method) {
            let error = ApiError::new(405, "the page does not support this method");
            let response = match visitor {
                _ if !prefers_pages(exchange) => failed(&error),
                Some(visitor) => {
                    let (status, text) = pages::error(page, visitor.permission, self.assets(), &error);
                    self.html(status, text)
                }
                None => return see_other("/login"),
            };
            return response.with("Allow", page.methods().join(", "));
        }
        match (page, visitor) {
            (PageKind::Asset, _) => match assets::find(&exchange.path) {
                Some(asset) => asset.response(&exchange.path, self.assets()),
                None => failed(&ApiError::new(404, "there is no such file")),
            },
            (PageKind::Login, _) if method == "POST" => self.login(request).await,
            (PageKind::Login, _) => self.html(Status::OK, pages::login(self.assets())),
            (PageKind::Logout, visitor) => {
                if let Some(visitor) = visitor {
                    self.sessions.end(visitor.secret, Instant::now());
                }
                json(Status::OK, &value!({ "message": "signed out" })).with("Set-Cookie", session::clear_cookie())
            }
            // Only a script of the dashboard may open the stream.
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
            (PageKind::Events, _) => failed(&ApiError::new(
                401,
                "the events are only for pages of the dashboard that are signed in",
            )),
            // Browsers omit the session cookie when a link on another site leads here, so the visitor may be signed in.
            // The page opens the same address again, and the browser then sends the cookie.
            (_, None) => match arrival::target(&view) {
                Some(target) => self.html(Status::OK, pages::arrival(self.assets(), &target)),
                None => see_other("/login"),
            },
            (page, Some(visitor)) => {
                let query = view.query.unwrap_or_default();
                if let Some(mode) = page.form()
                    && method == "POST"
                {
                    // A hash takes tens of milliseconds, so it is computed only for visitors who may save the form.
                    let password_hash = match visitor.permission {
                        Permission::Full => new_user::hash_of_password(request.body, exchange).await,
                        Permission::Read => None,
                    };
                    let sent = SentForm {
                        query,
                        body: request.body,
                        password_hash,
                    };
                    let submitted = pages::submit(page, mode, sent, visitor.permission, self.assets(), control).await;
                    return match submitted {
                        Submitted::Page(status, text) => self.html(status, text),
                        Submitted::Saved(location) => see_other(&location),
                    };
                }
                if page.takes_instructions() && method == "POST" {
                    return self.instruct(page, request.body, &visitor, control).await;
                }
                let notice = parameter(query, "result").and_then(|number| {
                    let number = number.parse().ok()?;
                    self.sessions.notice(visitor.secret, number, Instant::now())
                });
                let (status, text) =
                    pages::render(page, query, visitor.permission, self.assets(), control, notice).await;
                self.html(status, text)
            }
        }
    }

    /// Carries out the instruction in a form, and redirects to the page that reports the result.
    async fn instruct<C: Control>(&self, page: PageKind, form: &[u8], visitor: &Visitor<'_>, control: &C) -> Response {
        if visitor.permission != Permission::Full {
            let (status, text) = pages::error(page, visitor.permission, self.assets(), &pages::needs_full_token());
            return self.html(status, text);
        }
        let notice = match instruction::carry_out(page, form, control).await {
            Ok(Outcome::TakenOver(message)) => {
                return self.html(Status::OK, pages::taken_over(self.assets(), &message));
            }
            Ok(Outcome::Reported(notice)) => notice,
            Err(error) => Notice::refused(error, form),
        };
        // If the session has ended meanwhile, the number is 0, which no report has.
        let number = self.sessions.leave_notice(visitor.secret, notice, Instant::now());
        see_other(&format!("{}?result={}", frame::path(page), number.unwrap_or_default()))
    }

    /// Begins a session for a token, for the password, or for the code of a link.
    async fn login(&self, request: &DashboardRequest<'_>) -> Response {
        let login: Login = match serde_json::from_slice(request.body) {
            Ok(login) => login,
            Err(error) => return failed(&ApiError::new(400, format!("the body is not valid: {error}"))),
        };
        let now = Instant::now();
        let (permission, message) = match (&login.token, &login.code) {
            (Some(token), None) => {
                let permission = match request.access {
                    Some(access) => access.permission_of_text(request.exchange, token).await,
                    None => Ok(None),
                };
                match permission {
                    Ok(permission) => (permission, "this is not a token or the password of this server"),
                    Err(error) => return failed(&error),
                }
            }
            (None, Some(code)) => {
                let is_valid = self.sessions.use_link(code, now);
                let message = "this link has expired or was used already: type `rocknet dashboard` for another one";
                (is_valid.then_some(Permission::Full), message)
            }
            _ => return failed(&ApiError::new(400, "the body needs either a token or a code")),
        };
        let Some(permission) = permission else {
            let now_ms = request.exchange.services.clock.uptime_ms();
            let error = request.access.map(|access| access.failures.count(now_ms));
            // After too many failures, `error` has status 429. Otherwise `message` names the cause.
            return failed(&match error {
                Some(error) if error.status != 401 => error,
                _ => ApiError::new(401, message),
            });
        };
        match self.sessions.begin(permission, now) {
            Some(secret) => json(Status::OK, &value!({ "message": "signed in" }))
                .with("Set-Cookie", session::set_cookie(&secret, self.is_secure())),
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
            // `no-referrer` would make browsers send `Origin: null` with the forms of the page.
            .with("Referrer-Policy", "same-origin")
            .with("Cross-Origin-Opener-Policy", "same-origin")
            .with("Cross-Origin-Resource-Policy", "same-origin")
    }
}

/// Returns a redirect to another page of the dashboard.
fn see_other(location: &str) -> Response {
    Response::new(Status::SEE_OTHER)
        .with("Location", location)
        .with("Cache-Control", "no-store")
}

fn no_random() -> ApiError {
    ApiError::new(500, "the system provides no random numbers")
}
