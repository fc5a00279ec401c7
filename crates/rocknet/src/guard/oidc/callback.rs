//! End of a login by OpenID Connect: the provider has redirected the browser back with a code, which is exchanged for
//! the claims of the user.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_handler::guard::{Check, GuardContext};
use rocknet_oidc::id_token::{self, ExpectedToken, IdTokenError};
use rocknet_oidc::{Claims, LoginSession, PendingLogin, ProviderMetadata, TokenRequest, TokenResponse, is_same_secret};
use rocknet_proto::method::Method;
use rocknet_proto::status::Status;

use super::client::OidcClient;
use super::deadline::within;
use super::login::metadata;
use super::responses::{unavailable, uncached, with_cookies};
use super::scope::RequestScope;
use crate::bans::{Bans, Offence};
use crate::fixed;
use crate::metrics::LoginOutcome;
use crate::oidc::{FetchRequest, ProviderFailure};
use crate::response::Response;
use crate::services::Services;

/// Maximum length of each parameter of a callback in bytes, such as the code: more than providers send, and few enough
/// for one request to a token endpoint.
const MAX_PARAMETER: usize = 4_096;

/// Parameters of a callback (RFC 6749 §4.1.2, RFC 9207 §2).
#[derive(Default)]
struct CallbackQuery {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    issuer: Option<String>,
}

impl CallbackQuery {
    /// Parses a query; `None` if a parameter is repeated or too long.
    fn parse(query: &[u8]) -> Option<CallbackQuery> {
        let mut parsed = CallbackQuery::default();
        for (name, value) in form_urlencoded::parse(query) {
            let parameter = match &*name {
                "state" => &mut parsed.state,
                "code" => &mut parsed.code,
                "error" => &mut parsed.error,
                "iss" => &mut parsed.issuer,
                _ => continue,
            };
            if value.len() > MAX_PARAMETER || parameter.replace(value.into_owned()).is_some() {
                return None;
            }
        }
        Some(parsed)
    }
}

/// Reason why a login fails.
enum LoginError {
    /// The provider does not work.
    Provider(ProviderFailure),
    /// The provider does not know the code.
    InvalidCode,
    /// The login is refused with this status. The log has the reason, except for a missing code.
    Refused(Status),
}

impl From<ProviderFailure> for LoginError {
    fn from(failure: ProviderFailure) -> LoginError {
        LoginError::Provider(failure)
    }
}

/// Responds to a request for the callback path of one or several OpenID Connect clients of the site. The admission is
/// always an `Err` with the response, even after a login, so that no handler responds.
pub(super) fn respond(
    clients: &[&Arc<OidcClient>],
    scope: &RequestScope<'_>,
    context: &GuardContext<'_>,
    bans: &Arc<Bans>,
) -> Check {
    let refuse = |response: Response| Check::Decided(Err(Box::new(private(response))));
    if context.request.method != Method::Get {
        return refuse(fixed::error(Status::METHOD_NOT_ALLOWED).with("Allow", "GET"));
    }
    // An invalid query counts as empty. It has no state, so it belongs to no login.
    let query = CallbackQuery::parse(context.request.query.unwrap_or_default()).unwrap_or_default();
    let state = query.state.as_deref().unwrap_or_default();
    let begun = clients
        .iter()
        .find_map(|client| Some((client, client.pending_login(state, scope)?)));
    // Each state is accepted once, so that a callback cannot be repeated.
    let begun = begun.filter(|(client, (login, _))| client.used_states.record(&login.state));
    let Some((client, (login, deletion))) = begun else {
        // All OpenID Connect clients of a site share the counter, so the first one counts for all.
        if let Some(client) = clients.first() {
            client.logins.count(context.services, LoginOutcome::Failed);
        }
        return refuse(not_begun());
    };
    let (client, services, bans) = (Arc::clone(client), Rc::clone(context.services), Arc::clone(bans));
    let address = context.client;
    let work = Work {
        login,
        query,
        is_secure: scope.is_secure,
        origin: scope.origin.clone(),
        now: scope.now,
        cookies: scope.cookies.iter().map(|line| (*line).into()).collect(),
    };
    Check::Deferred(Box::pin(async move {
        let result = work.result(&client, &services).await;
        if matches!(result, Err(LoginError::InvalidCode)) {
            // Each guess of a code costs a request to the provider.
            bans.offend(address, Offence::Login);
        }
        let response = work.respond(&client, result, &services);
        let outcome = LoginOutcome::of_callback(response.status.code());
        client.logins.count(&services, outcome);
        Err(Box::new(private(with_cookies(response, &deletion))))
    }))
}

/// Adds the fields that keep the URL of a callback secret, because the URL contains the code.
fn private(response: Response) -> Response {
    uncached(response).with("Referrer-Policy", "no-referrer")
}

/// Returns the response to a callback without a login of this browser.
fn not_begun() -> Response {
    let hint =
        "This login was not begun in this browser, has expired, or is complete. Open the page again that you wanted.";
    fixed::replaceable(fixed::error_with_hint(Status::BAD_REQUEST, Some(hint)))
}

/// A callback that belongs to a login of the browser.
struct Work {
    login: PendingLogin,
    query: CallbackQuery,
    is_secure: bool,
    origin: String,
    /// Unix time in seconds.
    now: u64,
    /// Lines of `Cookie`.
    cookies: Vec<Box<[u8]>>,
}

impl Work {
    async fn result(&self, client: &OidcClient, services: &Rc<Services>) -> Result<LoginSession, LoginError> {
        // At most five requests: metadata, token, keys twice, and userinfo.
        let time = 5 * client.settings.timeout;
        let result = within(services, time, self.session(client, services)).await;
        result.unwrap_or_else(|| Err(ProviderFailure::timed_out().into()))
    }

    fn respond(
        &self,
        client: &OidcClient,
        result: Result<LoginSession, LoginError>,
        services: &Rc<Services>,
    ) -> Response {
        match result {
            Ok(session) => self.complete(client, &session, services),
            Err(LoginError::Provider(failure)) => unavailable(client, &failure),
            Err(LoginError::InvalidCode) => fixed::error(Status::BAD_REQUEST),
            Err(LoginError::Refused(status)) => fixed::error(status),
        }
    }

    /// Returns the redirect to the page that the user wanted, with the cookies of the session.
    fn complete(&self, client: &OidcClient, session: &LoginSession, services: &Rc<Services>) -> Response {
        let lines: Vec<&[u8]> = self.cookies.iter().map(|line| &**line).collect();
        let cookies = match client.session_cookies(session, self.is_secure, self.now, &lines, services) {
            Ok(cookies) => cookies,
            Err(error) => {
                client.log("a user cannot log in by `oidc`", error);
                return fixed::error(Status::INTERNAL_SERVER_ERROR);
            }
        };
        // The target begins with a slash, so it stays at this origin.
        let location = format!("{}{}", self.origin, self.login.target);
        with_cookies(fixed::redirect(Status::FOUND, location), &cookies)
    }

    /// Exchanges the code for the claims of the user.
    async fn session(&self, client: &OidcClient, services: &Rc<Services>) -> Result<LoginSession, LoginError> {
        let metadata = metadata(client, services).await?;
        self.check_issuer(client, &metadata)?;
        if let Some(error) = &self.query.error {
            let shown: String = error.chars().filter(|char| char.is_ascii_graphic()).take(64).collect();
            client.log(
                "the provider of `oidc` refuses a login",
                format_args!("error {shown:?}"),
            );
            return Err(LoginError::Refused(Status::FORBIDDEN));
        }
        let code = self.query.code.as_deref().filter(|code| !code.is_empty());
        let code = code.ok_or(LoginError::Refused(Status::BAD_REQUEST))?;
        let tokens = self.tokens(client, &metadata, code).await?;
        let mut claims = self.claims(client, &metadata, &tokens).await?;
        if client.claims.is_incomplete(&claims) {
            self.add_userinfo(client, &metadata, &tokens, &mut claims).await?;
        }
        client.claims.session(&claims, self.now).map_err(|error| {
            client.log("a user cannot log in by `oidc`", error);
            LoginError::Refused(Status::FORBIDDEN)
        })
    }

    /// Checks that the callback is that of the provider at which the login began (RFC 9207 §2.4).
    fn check_issuer(&self, client: &OidcClient, metadata: &ProviderMetadata) -> Result<(), LoginError> {
        let is_own = match &self.query.issuer {
            Some(issuer) => is_same_secret(issuer, &client.settings.issuer),
            None => !metadata.sends_issuer,
        };
        if !is_own {
            client.log(
                "a callback of `oidc` is refused",
                "its `iss` is missing or is another issuer",
            );
            return Err(LoginError::Refused(Status::BAD_REQUEST));
        }
        Ok(())
    }

    async fn tokens(
        &self,
        client: &OidcClient,
        metadata: &ProviderMetadata,
        code: &str,
    ) -> Result<TokenResponse, LoginError> {
        let request = TokenRequest {
            client_id: &client.settings.client_id,
            client_secret: client.secret.as_deref(),
            secret_method: metadata.secret_method,
            code,
            redirect_uri: &self.login.redirect_uri,
            verifier: &self.login.verifier,
        };
        let fetched = client.provider.fetch(FetchRequest {
            url: metadata.token_endpoint.clone(),
            form: Some(request.body()),
            authorization: request.authorization(),
            timeout: client.settings.timeout,
        });
        let response = fetched.await?;
        if response.status == 200 {
            let tokens = TokenResponse::parse(&response.body);
            return tokens.ok_or_else(|| ProviderFailure::invalid("its token endpoint sends no ID token").into());
        }
        match TokenResponse::error(&response.body) {
            Some(error) if error.is_invalid_code() => {
                client.log("the provider of `oidc` refuses a login", error);
                Err(LoginError::InvalidCode)
            }
            Some(error) => Err(ProviderFailure::invalid(error).into()),
            None => {
                let status = response.status;
                Err(ProviderFailure::invalid(format_args!("its token endpoint responds with status {status}")).into())
            }
        }
    }

    /// Returns the claims of the ID token. If the provider has a new key, its keys are fetched again.
    async fn claims(
        &self,
        client: &OidcClient,
        metadata: &ProviderMetadata,
        tokens: &TokenResponse,
    ) -> Result<Claims, LoginError> {
        let timeout = client.settings.timeout;
        let expected = ExpectedToken {
            issuer: &client.settings.issuer,
            client_id: &client.settings.client_id,
            nonce: &self.login.nonce,
            now: self.now,
        };
        let keys = client.provider.keys(metadata, None, timeout).await?;
        let mut verified = id_token::verify(&tokens.id_token, &keys, &expected);
        if verified == Err(IdTokenError::UnknownKey) {
            let keys = client.provider.keys(metadata, Some(&keys), timeout).await?;
            verified = id_token::verify(&tokens.id_token, &keys, &expected);
        }
        verified.map_err(|error| {
            client.log("an ID token of `oidc` is refused", &error);
            LoginError::Refused(match error {
                // The token is for another login, which is no failure of the provider.
                IdTokenError::Nonce => Status::BAD_REQUEST,
                _ => Status::BAD_GATEWAY,
            })
        })
    }

    /// Adds claims that the ID token does not have. Without a userinfo endpoint, there are no more.
    async fn add_userinfo(
        &self,
        client: &OidcClient,
        metadata: &ProviderMetadata,
        tokens: &TokenResponse,
        claims: &mut Claims,
    ) -> Result<(), LoginError> {
        let (Some(url), Some(token)) = (&metadata.userinfo_endpoint, tokens.bearer()) else {
            return Ok(());
        };
        let response = client.provider.fetch(FetchRequest {
            authorization: Some(format!("Bearer {token}")),
            ..FetchRequest::get(url, client.settings.timeout)
        });
        let response = response.await?;
        if response.status != 200 {
            let status = response.status;
            let reason = format_args!("its userinfo endpoint responds with status {status}");
            return Err(ProviderFailure::invalid(reason).into());
        }
        let Some(userinfo) = Claims::parse(&response.body) else {
            return Err(ProviderFailure::invalid("its userinfo endpoint sends no JSON object").into());
        };
        match claims.complete(userinfo) {
            true => Ok(()),
            false => Err(ProviderFailure::invalid("its userinfo endpoint names another user").into()),
        }
    }
}
