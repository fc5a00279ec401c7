//! Paths of a site that logins need: callback and logout. They work at every route of the site, so that no `auth` of a
//! route keeps a browser from them.

use std::sync::Arc;

use rocknet_config::model::{Auth, Settings};
use rocknet_handler::guard::{Admitted, Check, Guard, GuardContext};
use rocknet_proto::status::Status;

use super::client::OidcClient;
use super::scope::RequestScope;
use super::{callback, logout};
use crate::bans::Bans;
use crate::fixed;
use crate::registries::Registries;
use crate::route::ServerSettings;

/// Guard that responds at the paths of logins, and admits every other request.
struct LoginEndpoints {
    /// This server as a client of each provider, without those that have the same sessions and paths as another.
    clients: Vec<Arc<OidcClient>>,
    bans: Arc<Bans>,
}

/// Returns the guard for all routes of a site with these settings; `None` if no route has a login.
pub fn endpoints<'s>(
    settings: impl Iterator<Item = &'s Settings>,
    site: &Arc<str>,
    server: &Arc<ServerSettings>,
    registries: &Registries,
) -> Option<Arc<dyn Guard>> {
    let mut clients: Vec<Arc<OidcClient>> = Vec::new();
    for settings in settings {
        let Some(Auth::Oidc(model)) = &settings.auth else {
            continue;
        };
        let client = OidcClient::new(model, site, Arc::clone(server), registries);
        if !clients.iter().any(|other| other.is_same(&client)) {
            clients.push(Arc::new(client));
        }
    }
    let bans = Arc::clone(&registries.bans);
    (!clients.is_empty()).then(|| -> Arc<dyn Guard> { Arc::new(LoginEndpoints { clients, bans }) })
}

impl LoginEndpoints {
    fn is_endpoint(&self, path: &[u8]) -> bool {
        let has_path = |client: &OidcClient| {
            [client.settings.callback.as_bytes(), client.settings.logout.as_bytes()].contains(&path)
        };
        self.clients.iter().any(|client| has_path(client))
    }
}

impl Guard for LoginEndpoints {
    fn check(&self, context: &GuardContext<'_>) -> Check {
        let path = context.request.path;
        if !self.is_endpoint(path) {
            return Check::Decided(Ok(Admitted::default()));
        }
        let server = self.clients.first().map(|client| &client.server.server);
        let Some(scope) = server.and_then(|server| RequestScope::of(context, server)) else {
            return Check::Decided(Err(Box::new(fixed::error(Status::BAD_REQUEST))));
        };
        let with = |own: fn(&OidcClient) -> &str| -> Vec<&Arc<OidcClient>> {
            let clients = self.clients.iter();
            clients.filter(|client| own(client).as_bytes() == path).collect()
        };
        match &with(|client| &client.settings.callback)[..] {
            [] => logout::respond(&with(|client| &client.settings.logout), &scope, context),
            callbacks => callback::respond(callbacks, &scope, context, &self.bans),
        }
    }

    /// Hides the cookies of sessions and logins, because an application could use a session at other routes of the
    /// site.
    fn hides_cookie(&self, name: &[u8]) -> bool {
        self.clients.iter().any(|client| client.has_cookie(name))
    }

    fn admit_cached(&self, context: &GuardContext<'_>) -> Option<Option<Arc<str>>> {
        (!self.is_endpoint(context.request.path)).then_some(None)
    }
}
