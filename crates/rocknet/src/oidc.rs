//! State of logins by OpenID Connect that all workers share: keys of cookies, providers, and the HTTP client.

mod cookie_keys;
mod failure;
mod http_client;
mod provider;
mod used_states;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use rocknet_config::model::{Auth, Config, Site};

pub use cookie_keys::CookieKeys;
pub use failure::ProviderFailure;
pub use http_client::{FetchRequest, FetchResponse, HttpClient};
pub use provider::Provider;
pub use used_states::UsedStates;

/// State of logins by OpenID Connect. A reload keeps it.
#[derive(Default)]
pub struct OidcRegistry {
    /// Keys that encrypt cookies.
    pub keys: Arc<CookieKeys>,
    /// Values of `state` in callbacks that have arrived.
    pub used_states: Arc<UsedStates>,
    http: Arc<HttpClient>,
    /// Providers that a configuration uses.
    providers: Mutex<Vec<Weak<Provider>>>,
}

impl OidcRegistry {
    /// Reads the keys of cookies from the state folder, or stores new ones there, if a configuration has logins. Does
    /// nothing once that has succeeded.
    pub fn prepare(&self, config: &Config, state_folder: &Path) {
        let has_login = |site: &Site| {
            let mut settings = std::iter::once(&site.settings).chain(site.routes.iter().map(|route| &route.settings));
            settings.any(|settings| matches!(settings.auth, Some(Auth::Oidc(_))))
        };
        if config.sites.iter().any(has_login) {
            self.keys.open_store(state_folder);
        }
    }

    /// Returns the provider of an issuer. All routes with this issuer share it, also across reloads.
    pub fn provider(&self, issuer: &str) -> Arc<Provider> {
        let mut providers = self.providers.lock().unwrap_or_else(PoisonError::into_inner);
        let found = providers
            .iter()
            .filter_map(Weak::upgrade)
            .find(|own| own.issuer() == issuer);
        found.unwrap_or_else(|| {
            let provider = Arc::new(Provider::new(issuer.to_owned(), Arc::clone(&self.http)));
            providers.retain(|own| own.strong_count() > 0);
            providers.push(Arc::downgrade(&provider));
            provider
        })
    }

    /// Ends the thread of the HTTP client. Returns true if it has ended by `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.http.stop(deadline)
    }
}
