//! Login by OpenID Connect: a provider identifies users, and cookies keep their sessions (`auth = { oidc = "…" }`).
//!
//! ```text
//! request ─▶ OidcLogin: session in its cookie? ─ yes ─▶ rules ─▶ admitted, or 403
//!                 └─ no ─▶ login.rs: redirect to the provider, or 401
//! callback, logout ─▶ endpoints.rs, at every route of the site ─▶ callback.rs, logout.rs
//! ```

mod callback;
mod client;
mod deadline;
mod endpoints;
mod identity;
mod login;
mod logout;
mod responses;
mod scope;

use std::sync::Arc;

use rocknet_config::model::Oidc;
use rocknet_handler::guard::{Admitted, Check, GuardContext, Identity};
use rocknet_oidc::IdentityRules;
use rocknet_proto::status::Status;

use super::authenticator::Authenticator;
use super::route::GuardRoute;
use crate::fixed;
use crate::metrics::RejectedSession;

use client::OidcClient;
use responses::uncached;
use scope::RequestScope;

pub use endpoints::endpoints;
pub(super) use identity::names as identity_names;

/// Login that a route requires.
struct OidcLogin {
    client: Arc<OidcClient>,
    rules: IdentityRules,
    /// Identity of clients that are admitted without a login.
    anonymous: Arc<Identity>,
}

/// Creates the login of a route.
pub(super) fn make(model: &Oidc, route: &GuardRoute<'_>) -> Arc<dyn Authenticator> {
    Arc::new(OidcLogin::new(model, route))
}

impl OidcLogin {
    /// Prepares the login of a route.
    fn new(model: &Oidc, route: &GuardRoute<'_>) -> OidcLogin {
        let server = Arc::clone(&route.route.server);
        OidcLogin {
            client: Arc::new(OidcClient::new(model, route.site, server, route.registries)),
            rules: IdentityRules {
                users: model.users.clone(),
                emails: model.emails.clone(),
                groups: model.groups.clone(),
            },
            anonymous: Arc::new(identity::anonymous()),
        }
    }
}

impl Authenticator for OidcLogin {
    /// Adds the identity of a client without a login, which has no fields.
    fn anonymous(&self, _context: &GuardContext<'_>, admitted: Admitted) -> Admitted {
        Admitted {
            identity: Some(Arc::clone(&self.anonymous)),
            ..admitted
        }
    }

    /// Admits a request with a session, and lets other clients log in.
    fn check(self: Arc<Self>, context: &GuardContext<'_>) -> Check {
        let Some(scope) = RequestScope::of(context, &self.client.server.server) else {
            return Check::Decided(Err(Box::new(fixed::error(Status::BAD_REQUEST))));
        };
        match self.client.session(&scope) {
            Ok(session) if self.rules.admit(&session) => {
                let cookies = self.client.renewal(&session, &scope, context.services);
                Check::Decided(Ok(identity::admitted(&session, cookies)))
            }
            Ok(session) => {
                self.client.sessions.count(context.services, RejectedSession::Forbidden);
                let logout = &self.client.settings.logout;
                let hint = format!(
                    "You are logged in as {}. To log in as another user, open {logout} first.",
                    session.user
                );
                let page = fixed::error_with_hint(Status::FORBIDDEN, Some(&hint));
                Check::Decided(Err(Box::new(fixed::replaceable(uncached(page)))))
            }
            Err(rejected) => {
                if let Some(reason) = rejected {
                    self.client.sessions.count(context.services, reason);
                }
                if login::is_navigation(context.request) {
                    return login::begin(&self.client, &scope, context);
                }
                // RFC 9110 §15.5.2 requires the field. Browsers know no scheme for a login by pages.
                let response = fixed::error(Status::UNAUTHORIZED).with("WWW-Authenticate", "Cookie realm=\"oidc\"");
                Check::Decided(Err(Box::new(uncached(response))))
            }
        }
    }
}
