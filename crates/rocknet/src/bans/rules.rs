//! Settings of `[ban]`, prepared for lookups.

use std::net::IpAddr;
use std::time::Duration;

use rocknet_config::client_ranges::ClientRanges;
use rocknet_config::model::{Ban, Config, Network, OffenceRate};
use rocknet_control::text;
use rocknet_limit::Rate;

use super::address;
use super::offence::Offence;

/// Rules of bans.
#[derive(Default)]
pub struct Rules {
    /// `None`: offences lead to no ban.
    ban: Option<Ban>,
    rates: [Option<ActiveRate>; Offence::ALL.len()],
    exempt: ClientRanges,
    /// Proxies whose connections carry requests of several clients.
    proxies: Vec<Network>,
}

/// Rate of offences, such as 10 in 10 minutes (`10/10m`).
#[derive(Debug, Clone, Copy)]
pub struct ActiveRate {
    /// Rate of the offences that have no consequence: with `10/10m`, the first nine of a burst. The next offence leads
    /// to a ban. `None` if already the first offence leads to one.
    pub admitted: Option<Rate>,
    /// Rate as configured, which includes the offence that leads to a ban: with `10/10m`, a burst of ten. It limits the
    /// logins in progress, because all of them may fail.
    pub up_to_ban: Rate,
    /// Number of offences and time as configured, for texts.
    written: OffenceRate,
}

impl Rules {
    /// Prepares the rules of a configuration.
    pub fn new(config: &Config) -> Rules {
        let server = &config.server;
        let proxies = [&server.trusted_proxies[..], &server.proxy_protocol].concat();
        let Some(ban) = &config.ban else {
            // Operators can ban clients without `[ban]`. The default exemptions apply to these bans.
            return Rules {
                proxies,
                exempt: ClientRanges::new(&Ban::default().exempt),
                ..Rules::default()
            };
        };
        // In the order of `Offence::ALL`.
        let rates = [ban.logins, ban.not_found, ban.refused, ban.handshakes];
        Rules {
            rates: rates.map(|rate| rate.map(ActiveRate::new)),
            exempt: ClientRanges::new(&ban.exempt),
            ban: Some(ban.clone()),
            proxies,
        }
    }

    /// Returns the settings and the rate of a kind of offence, if it leads to bans.
    pub fn rate(&self, offence: Offence) -> Option<(&Ban, &ActiveRate)> {
        self.ban.as_ref().zip(self.rates[offence as usize].as_ref())
    }

    /// Returns true if bans for offences are in effect; false without `[ban]` and with `dry_run`.
    pub fn bans_offenders(&self) -> bool {
        self.ban.as_ref().is_some_and(|ban| !ban.dry_run)
    }

    /// Returns true for an address that is never banned.
    pub fn is_exempt(&self, address: IpAddr) -> bool {
        self.exempt.contain(Some(address)) || self.is_proxy(address)
    }

    /// Returns true for a proxy whose connections carry requests of several clients.
    pub fn is_proxy(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|network| network.contains(address))
    }

    /// Returns true if the first address of a network is exempt. Other addresses of the network may be exempt too;
    /// `is_exempt` finds them when they connect.
    pub fn exempts(&self, network: Network) -> bool {
        self.is_exempt(address::first_address(network))
    }

    /// Returns the duration of a first ban.
    pub fn default_time(&self) -> Duration {
        self.ban.as_ref().map_or(Ban::default().time, |ban| ban.time)
    }

    /// Returns true if there are paths of login forms.
    pub fn has_login_paths(&self) -> bool {
        let ban = self.ban.as_ref().filter(|ban| ban.logins.is_some());
        ban.is_some_and(|ban| !ban.login_paths.is_empty())
    }

    /// Returns true for the decoded path of a login form. Applications in PHP ignore further segments of the path.
    pub fn is_login_path(&self, path: &str) -> bool {
        let paths = self.ban.as_ref().map_or(&[][..], |ban| &ban.login_paths);
        let is_same = |login: &String| {
            let rest = path.strip_prefix(login.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        paths.iter().any(is_same)
    }
}

impl ActiveRate {
    fn new(written: OffenceRate) -> ActiveRate {
        let window = u64::try_from(written.window.as_nanos()).unwrap_or(u64::MAX);
        let interval = window / u64::from(written.count.max(1));
        // `None`: the offences of a burst may come at once.
        let rate = |burst| Rate::new(interval, burst, None);
        ActiveRate {
            up_to_ban: rate(written.count.max(1)),
            admitted: (written.count > 1).then(|| rate(written.count - 1)),
            written,
        }
    }

    /// Returns the rate as text, by which the next process of an upgrade recognizes the same rate.
    pub fn name(&self, offence: Offence) -> String {
        let OffenceRate { count, window } = self.written;
        format!("{} {count}/{}ns", offence.name(), window.as_nanos())
    }

    /// Returns the reason of a ban for the log.
    pub fn describe(&self, offence: Offence) -> String {
        let OffenceRate { count, window } = self.written;
        let window = text::duration(window.as_secs());
        format!("{count} {} in {window}", offence.description())
    }
}

#[cfg(test)]
mod tests {
    use rocknet_limit::Taken;

    use super::*;

    #[test]
    fn the_last_offence_of_a_rate_leads_to_a_ban() {
        for count in [1, 2, 5] {
            let rate = ActiveRate::new(OffenceRate {
                count,
                window: Duration::from_secs(60),
            });
            let mut state = 0;
            let is_admitted = |rate: &Rate| matches!(rate.take(&mut state, 7), Taken::Admitted { .. });
            let admitted = rate.admitted.map_or(0, |rate| {
                let mut is_admitted = is_admitted;
                (0..10).filter(|_| is_admitted(&rate)).count()
            });
            assert_eq!(admitted as u32, count - 1);
        }
    }

    #[test]
    fn proxies_and_private_networks_are_exempt() {
        let mut config = Config {
            ban: Some(Ban::default()),
            ..Config::default()
        };
        config.server.trusted_proxies = vec![address::parse("203.0.113.0/24").unwrap()];
        let rules = Rules::new(&config);
        for (address, expected) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("10.1.2.3", true),
            ("203.0.113.9", true),
            ("198.51.100.1", false),
        ] {
            assert_eq!(rules.is_exempt(address.parse().unwrap()), expected, "{address}");
        }
        assert!(rules.is_login_path("/wp-login.php/x") && !rules.is_login_path("/wp-login.php.txt"));
        config.ban = None;
        let rules = Rules::new(&config);
        assert!(!rules.has_login_paths() && rules.rate(Offence::Login).is_none());
        // Bans of operators have the same exemptions without `[ban]`.
        for (address, expected) in [("203.0.113.9", true), ("127.0.0.1", true), ("198.51.100.1", false)] {
            assert_eq!(rules.is_exempt(address.parse().unwrap()), expected, "{address}");
        }
    }
}
