//! This server as a client of a provider, for one site: its settings, and the cookies of its sessions and logins.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::model::Oidc;
use rocknet_oidc::cookies::{self, CookieScope};
use rocknet_oidc::{ClaimNames, CookieKind, LOGIN_TIME_S, LoginSession, PendingLogin};
use tracing::Level;

use super::scope::RequestScope;
use crate::log::throttle::Cause;
use crate::metrics::{LoginOutcome, RejectedSession};
use crate::oidc::{CookieKeys, Provider, UsedStates};
use crate::outcomes::OutcomeCounters;
use crate::registries::Registries;
use crate::route::ServerSettings;
use crate::services::Services;

/// Reason why a session cannot be stored in cookies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionCookieError {
    /// The system has no random numbers.
    NoRandomNumbers,
    /// The session has ended.
    Ended,
    /// The claims are longer than cookies may be.
    TooLong,
}

impl fmt::Display for SessionCookieError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SessionCookieError::NoRandomNumbers => "the system provides no random numbers",
            SessionCookieError::Ended => "the session has ended; `lifetime` or `idle` is too short",
            SessionCookieError::TooLong => {
                "its groups and names are longer than cookies may be; let the provider send fewer groups"
            }
        })
    }
}

/// This server as a client of a provider.
pub(super) struct OidcClient {
    /// Name of the site.
    pub site: Arc<str>,
    pub settings: Oidc,
    pub server: Arc<ServerSettings>,
    /// Secret that the provider has given to this server.
    pub secret: Option<String>,
    /// Scopes, separated by spaces.
    pub scope: String,
    pub claims: ClaimNames,
    pub provider: Arc<Provider>,
    pub used_states: Arc<UsedStates>,
    /// Logins of the site.
    pub logins: Arc<OutcomeCounters<LoginOutcome>>,
    /// Requests to the site that their session does not admit.
    pub sessions: Arc<OutcomeCounters<RejectedSession>>,
    keys: Arc<CookieKeys>,
    /// Identifies the settings on which the contents of a session depend. A cookie of other settings is not opened.
    cookie_kind: CookieKind,
}

impl OidcClient {
    /// Prepares a client.
    pub fn new(model: &Oidc, site: &Arc<str>, server: Arc<ServerSettings>, registries: &Registries) -> OidcClient {
        let (registry, counters) = (&registries.oidc, &registries.auth_counters);
        let secret = model.client_secret.as_ref();
        let scope = model.scopes.join(" ");
        let trust = if model.trust_email { "trusted" } else { "verified" };
        let cookie_kind = CookieKind::of(&[
            site,
            &model.issuer,
            &model.client_id,
            &scope,
            &model.user_claim,
            &model.groups_claim,
            trust,
        ]);
        OidcClient {
            site: Arc::clone(site),
            server,
            secret: secret.map(|secret| String::from_utf8_lossy(secret.bytes()).into_owned()),
            scope,
            claims: ClaimNames {
                user: model.user_claim.clone(),
                groups: model.groups_claim.clone(),
                trusts_email: model.trust_email,
            },
            provider: registry.provider(&model.issuer),
            used_states: Arc::clone(&registry.used_states),
            logins: counters.logins.of_site(site),
            sessions: counters.sessions.of_site(site),
            keys: Arc::clone(&registry.keys),
            cookie_kind,
            settings: model.clone(),
        }
    }

    /// Returns true if two clients have the same sessions and paths.
    pub fn is_same(&self, other: &OidcClient) -> bool {
        let paths = |client: &OidcClient| [client.settings.callback.clone(), client.settings.logout.clone()];
        self.cookie_kind == other.cookie_kind && paths(self) == paths(other)
    }

    /// Returns true for the name of a cookie with a session or a login of this client.
    pub fn has_cookie(&self, name: &[u8]) -> bool {
        self.cookie_kind.has_name(name)
    }

    /// Returns the session of a request.
    ///
    /// # Errors
    ///
    /// Fails with `None` if the request has no session, and with the reason if its session is not valid.
    pub fn session(&self, scope: &RequestScope<'_>) -> Result<LoginSession, Option<RejectedSession>> {
        let name = self.cookie_kind.session_name(scope.is_secure);
        let Some(session) = self.open_session(&name, scope) else {
            let is_sent = cookies::pairs(&scope.cookies).any(|(own, _)| own == name.as_bytes());
            return Err(is_sent.then_some(RejectedSession::Invalid));
        };
        let (lifetime, idle) = self.times();
        match session.remaining(scope.now, lifetime, idle) {
            Some(_) => Ok(session),
            None => Err(Some(RejectedSession::Expired)),
        }
    }

    /// Decrypts the session of a request. `name`: name of its cookie.
    fn open_session(&self, name: &str, scope: &RequestScope<'_>) -> Option<LoginSession> {
        let sealed = cookies::read(&scope.cookies, name)?;
        let context = self.cookie_kind.context(name);
        LoginSession::parse(&self.keys.ring()?.open(&context, &sealed, scope.now)?)
    }

    /// Returns the `Set-Cookie` fields that renew a session, if that is due. If they cannot be made, returns none:
    /// the session in the cookie remains valid until it ends.
    pub fn renewal(&self, session: &LoginSession, scope: &RequestScope<'_>, services: &Rc<Services>) -> Vec<String> {
        let (_, idle) = self.times();
        let renewed = session.renewed(scope.now, idle);
        let cookies = |renewed| {
            self.session_cookies(&renewed, scope.is_secure, scope.now, &scope.cookies, services)
                .ok()
        };
        renewed.and_then(cookies).unwrap_or_default()
    }

    /// Returns the `Set-Cookie` fields of a session. `now`: Unix time in seconds. `lines`: the `Cookie` fields of the
    /// request.
    ///
    /// # Errors
    ///
    /// Fails if the fields are too long, if the session has ended, or if the system has no random numbers.
    pub fn session_cookies(
        &self,
        session: &LoginSession,
        is_secure: bool,
        now: u64,
        lines: &[&[u8]],
        services: &Rc<Services>,
    ) -> Result<Vec<String>, SessionCookieError> {
        let (lifetime, idle) = self.times();
        let name = self.cookie_kind.session_name(is_secure);
        let ring = self.keys.ring_for_sealing(services);
        let ring = ring.ok_or(SessionCookieError::NoRandomNumbers)?;
        let sealed = ring.seal(&self.cookie_kind.context(&name), &session.to_bytes());
        let sealed = sealed.ok_or(SessionCookieError::NoRandomNumbers)?;
        let max_age = session
            .remaining(now, lifetime, idle)
            .ok_or(SessionCookieError::Ended)?;
        let fields = cookies::write(&name, &sealed, CookieScope { is_secure, max_age }, lines);
        fields.ok_or(SessionCookieError::TooLong)
    }

    /// Returns the `Set-Cookie` fields that delete the session of a request.
    pub fn forget_session(&self, scope: &RequestScope<'_>) -> Vec<String> {
        let name = self.cookie_kind.session_name(scope.is_secure);
        cookies::delete(&name, scope.is_secure, &scope.cookies)
    }

    /// Returns the `Set-Cookie` fields of a login that begins; `None` if the system has no random numbers.
    pub fn login_cookies(
        &self,
        login: &PendingLogin,
        scope: &RequestScope<'_>,
        services: &Rc<Services>,
    ) -> Option<Vec<String>> {
        let name = self
            .cookie_kind
            .login_name(PendingLogin::label(&login.state)?, scope.is_secure);
        let sealed = self
            .keys
            .ring_for_sealing(services)?
            .seal(&self.cookie_kind.context(&name), &login.to_bytes())?;
        let attributes = CookieScope {
            is_secure: scope.is_secure,
            max_age: LOGIN_TIME_S,
        };
        cookies::write(&name, &sealed, attributes, &scope.cookies)
    }

    /// Returns true if the browser has sent the cookie of a login with this label.
    pub fn has_login(&self, label: &str, scope: &RequestScope<'_>) -> bool {
        let own = self.cookie_kind.login_name(label, scope.is_secure);
        cookies::pairs(&scope.cookies).any(|(name, _)| name == own.as_bytes())
    }

    /// Returns the login that a callback with this state completes, and the `Set-Cookie` fields that delete its cookie.
    /// `None` if this browser has not begun it, or not recently.
    pub fn pending_login(&self, state: &str, scope: &RequestScope<'_>) -> Option<(PendingLogin, Vec<String>)> {
        let name = self
            .cookie_kind
            .login_name(PendingLogin::label(state)?, scope.is_secure);
        let sealed = cookies::read(&scope.cookies, &name)?;
        let context = self.cookie_kind.context(&name);
        let login = PendingLogin::parse(&self.keys.ring()?.open(&context, &sealed, scope.now)?)?;
        let is_own = rocknet_oidc::is_same_secret(&login.state, state) && login.is_current(scope.now);
        is_own.then(|| (login, cookies::delete(&name, scope.is_secure, &scope.cookies)))
    }

    /// Returns the maximum times of a session in seconds: since its login, and since its last request.
    fn times(&self) -> (u64, u64) {
        (self.settings.lifetime.as_secs(), self.settings.idle.as_secs())
    }

    /// Logs a failure of a login, at most once a second for each kind. `what`: kind of the failure.
    #[cold]
    pub fn log(&self, what: &'static str, reason: impl fmt::Display) {
        let cause = Cause {
            level: Level::WARN,
            what,
            site: &self.site,
            subject: &self.settings.issuer,
        };
        if cause.may_be_logged() {
            tracing::warn!(site = %self.site, provider = %self.settings.issuer, "{what}: {reason}");
        }
    }
}
