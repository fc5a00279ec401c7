//! Logins, which count as failed from their beginning until their responses are known.

use std::sync::atomic::Ordering;

use rocknet_config::client_ranges::client_network;
use rocknet_limit::Rate;
use rocknet_proto::method::Method;
use rocknet_proto::request::{Request, split_target};
use rocknet_proto::semantics::safe_path::SafePath;

use super::Bans;
use super::logins::CountedLogin;
use super::offence::Offence;
use crate::exchange::Client;
use crate::values::origin_form;

impl Bans {
    /// Returns true if there are paths of login forms, so that a successful response may mean a failed login.
    #[inline]
    pub fn has_login_paths(&self) -> bool {
        self.has_login_paths.load(Ordering::Relaxed)
    }

    /// Returns true for a POST request to a login form.
    pub fn is_login(&self, request: &Request<'_>) -> bool {
        if request.method != Method::Post {
            return false;
        }
        let path = SafePath::parse(split_target(origin_form(request)).0);
        path.is_ok_and(|path| self.rules().is_login_path(path.as_str()))
    }

    /// Counts a login of a client as failed before its response is known. Returns `None` if failed logins of the client
    /// lead to no ban.
    ///
    /// # Errors
    ///
    /// Fails with the seconds after which the client may try again. Its logins in progress would already lead to a ban
    /// if all of them failed.
    pub fn take_login(&self, client: Client) -> Result<Option<CountedLogin>, u64> {
        let Some((key, rate)) = self.login_rate(client) else {
            return Ok(None);
        };
        let taken = self.logins.take(key, rate, self.elapsed());
        taken
            .map(Some)
            .map_err(|retry_after| retry_after.div_ceil(1_000_000_000).max(1))
    }

    /// Takes back that a login was counted as failed.
    pub fn give_back_login(&self, login: &CountedLogin) {
        self.logins.give_back(login, self.elapsed());
    }

    /// Returns the key of a client in the table of logins, and the rate by which the table counts
    /// (`ActiveRate::up_to_ban`). `None` if failed logins of the client lead to no ban.
    fn login_rate(&self, client: Client) -> Option<(u64, Rate)> {
        let Client::Ip { address, .. } = client else {
            return None;
        };
        let rules = self.rules();
        let (settings, rate) = rules.rate(Offence::Login)?;
        let is_counted = !settings.dry_run && !rules.is_exempt(address);
        is_counted.then(|| (self.seed.of_client(client_network(address)), rate.up_to_ban))
    }
}
