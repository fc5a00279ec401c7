//! Bans that operators add and lift.

use std::time::Duration;

use rocknet_control::text;
use rocknet_limit::bans::{Ban, FOREVER};

use super::networks::AddedNetwork;
use super::offence::{self, Reason};
use super::{Bans, MAX_ADDED, address, lock, unix_s};

impl Bans {
    /// Bans a client or network until an operator lifts the ban, or for a time. `time`: `None` for the time of the
    /// configuration; zero for a ban without an end. Returns the address as banned, and the end of the ban
    /// in seconds of the Unix clock, `None` if it has none.
    ///
    /// # Errors
    ///
    /// The error names a text that is not an address or network, a client that is exempt, or the maximum number of
    /// networks.
    pub fn add(&self, target: &str, time: Option<Duration>, reason: &str) -> Result<(String, Option<u64>), String> {
        let network = address::parse(target)?;
        let rules = self.rules();
        if rules.exempts(network) {
            return Err(format!(
                "{} is not banned, because it is exempt by `ban.exempt`, or a proxy of `server.trusted_proxies` or \
                 `server.proxy_protocol`",
                address::text(network)
            ));
        }
        let now = unix_s();
        // Adds the bans that an old process has passed on after an upgrade. Without `[ban]`, no thread does this.
        self.take_passed(now);
        let until = match time.unwrap_or_else(|| rules.default_time()) {
            Duration::ZERO => FOREVER,
            time => now.saturating_add(time.as_secs().max(1)),
        };
        let reason = Reason::Operator(text::sanitized(reason, offence::MAX_REASON).into());
        let banned = match address::client_of(network) {
            Some(client) => {
                let (since, count) = (now, 1);
                let ban = Ban {
                    since,
                    until,
                    count,
                    reason,
                };
                self.clients.insert(client, ban.clone(), now);
                self.changed(|unwritten| unwritten.clients.push((client, ban)));
                address::client_text(client)
            }
            None => {
                let mut added = lock(&self.added);
                added.retain(|other| other.is_active(now) && other.network != network);
                if added.len() >= MAX_ADDED {
                    return Err(format!(
                        "{MAX_ADDED} networks are banned already; write more networks to a file of `ban.files`"
                    ));
                }
                let since = now;
                let ban = AddedNetwork {
                    network,
                    since,
                    until,
                    reason,
                };
                added.push(ban.clone());
                drop(added);
                self.changed(|unwritten| unwritten.networks.push(ban));
                address::text(network)
            }
        };
        self.rebuild_networks(now);
        tracing::info!("{banned} was banned by an operator");
        self.save();
        Ok((banned, (until != FOREVER).then_some(until)))
    }

    /// Lifts the ban of a client or network. Returns the address, and false if it was not banned.
    ///
    /// # Errors
    ///
    /// The error names a text that is not an address or network, or the network or file that bans the address.
    pub fn lift(&self, target: &str) -> Result<(String, bool), String> {
        let network = address::parse(target)?;
        let now = unix_s();
        self.take_passed(now);
        let (lifted, is_lifted) = match address::client_of(network) {
            Some(client) => {
                // The counted offences are forgotten (0: the bucket is full). Otherwise the next offence would lead to
                // another ban.
                for rate in &self.rates {
                    rate.update(self.seed.of_client(client), self.elapsed(), |full_at| *full_at = 0);
                }
                self.logins.forget(self.seed.of_client(client), self.elapsed());
                lock(&self.unwritten).clients.retain(|(banned, _)| *banned != client);
                (address::client_text(client), self.clients.lift(client, now))
            }
            None => {
                let mut added = lock(&self.added);
                let before = added.len();
                added.retain(|other| other.network != network);
                lock(&self.unwritten).networks.retain(|ban| ban.network != network);
                (address::text(network), added.len() < before)
            }
        };
        self.rebuild_networks(now);
        if is_lifted {
            tracing::info!("the ban of {lifted} was lifted by an operator");
            self.save();
        }
        // Another entry may still ban the address.
        if let Some(by) = self.networks(now).entry_of(address::first_address(network)) {
            return Err(format!("{lifted} is banned by {by}"));
        }
        Ok((lifted, is_lifted))
    }
}
