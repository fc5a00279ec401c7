//! Services that work together with the server: other servers, PHP, trust stores and databases.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rocknet_control::{PhpPoolSummary, UpstreamSummary};

use super::fetched::Fetched;
use crate::job::{
    BanReport, Database, DatabaseReport, DatabaseState, PhpReport, ResponseTimes, SiteUse, Trust, TrustStore,
    UpstreamReport,
};

/// Server that requests are forwarded to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Upstream {
    pub summary: UpstreamSummary,
    /// Number of responses since the start of the server.
    pub responses: u64,
    /// Mean response time in microseconds since the previous measurement. If there was no response since, the mean of
    /// all responses; `None` without any response.
    pub response_us: Option<u64>,
}

/// Services that work together with the server.
#[derive(Debug, Default)]
pub struct Services {
    pub upstreams: Fetched<Vec<Upstream>>,
    pub bans: Fetched<BanReport>,
    pub php: Fetched<PhpReport>,
    pub uses: Fetched<Vec<SiteUse>>,
    pub trust: Fetched<Vec<TrustStore>>,
    pub databases: Fetched<DatabaseReport>,
    /// Units that are being started or stopped.
    pub changing: BTreeSet<String>,
    /// Latest response times by address, with their time.
    times: Option<(Duration, BTreeMap<String, ResponseTimes>)>,
}

impl Services {
    /// Discards the data of the previous server, because another server is used from now on.
    pub fn forget_server(&mut self) {
        let databases = std::mem::take(&mut self.databases);
        let changing = std::mem::take(&mut self.changing);
        *self = Services {
            databases,
            changing,
            ..Services::default()
        };
    }

    /// Returns the state of a database, which is changing while the user types a password.
    pub fn state(&self, database: &Database) -> DatabaseState {
        match self.changing.contains(&database.unit) {
            true => DatabaseState::Changing,
            false => database.state,
        }
    }

    /// Returns the websites that forward requests to an address, each with its route.
    pub fn users_of_server(&self, address: &str) -> Vec<String> {
        let wanted = plain_address(address);
        self.users(|found| found.servers.iter().any(|server| plain_address(server) == wanted))
    }

    /// Returns the websites that use a pool of PHP. `pools`: all pools, of which a website without a minor version uses
    /// the newest that matches.
    pub fn users_of_php(&self, pool: &PhpPoolSummary, pools: &[PhpPoolSummary]) -> Vec<String> {
        self.users(|found| {
            let rank = pool_rank(pool, found);
            rank.is_some() && rank == pools.iter().filter_map(|pool| pool_rank(pool, found)).max()
        })
    }

    fn users(&self, is_user: impl Fn(&SiteUse) -> bool) -> Vec<String> {
        let Fetched::Loaded(uses) = &self.uses else {
            return Vec::new();
        };
        let users = uses.iter().filter(|found| is_user(found));
        let mut names: Vec<String> = users.map(|found| format!("{}{}", found.site, found.route)).collect();
        names.dedup();
        names
    }

    /// Returns the version or address of the PHP of a website or of its first route with PHP; `None` without PHP, or
    /// while the settings are not known.
    pub fn php_of(&self, site: &str) -> Option<&str> {
        let Fetched::Loaded(uses) = &self.uses else {
            return None;
        };
        let mut own = uses.iter().filter(|found| found.site == site);
        own.find_map(|found| found.php.as_deref())
    }

    /// Returns the version of PHP of a website: that of the pool that runs it if it is known, else the text in the
    /// configuration; `None` if it is not known to have PHP.
    pub fn php_version(&self, site: &str) -> Option<&str> {
        let wanted = self.php_of(site)?;
        let (Fetched::Loaded(uses), Fetched::Loaded(php)) = (&self.uses, &self.php) else {
            return Some(wanted);
        };
        let own = uses.iter().find(|found| found.site == site && found.php.is_some())?;
        let matching = php
            .pools
            .iter()
            .filter_map(|pool| Some((pool_rank(pool, own)?, &*pool.version)));
        matching.max().map(|(_, version)| version).or(Some(wanted))
    }

    /// Returns the trust of the browsers of this account in the local CA; `None` if it is not known.
    pub fn browsers_trust(&self) -> Option<bool> {
        let Fetched::Loaded(stores) = &self.trust else {
            return None;
        };
        let mut browsers = stores.iter().filter(|store| !store.is_of_system()).peekable();
        browsers.peek()?;
        Some(browsers.all(|store| store.trust == Trust::Trusted))
    }

    /// Takes a measurement of other servers.
    pub fn take_upstreams(&mut self, report: UpstreamReport) {
        let before = self.times.as_ref().map(|(_, times)| times);
        let upstream = |summary: UpstreamSummary| {
            let now = report.times.get(&summary.address).copied().unwrap_or_default();
            let before = before.and_then(|times| times.get(&summary.address));
            let since = before.map(|before| ResponseTimes {
                count: now.count.saturating_sub(before.count),
                seconds: now.seconds - before.seconds,
            });
            let mean = |times: ResponseTimes| {
                let seconds = times.seconds.max(0.0) / times.count as f64;
                (times.count > 0).then_some((seconds * 1e6) as u64)
            };
            Upstream {
                responses: now.count,
                response_us: since.and_then(mean).or_else(|| mean(now)),
                summary,
            }
        };
        self.upstreams = Fetched::Loaded(report.list.into_iter().map(upstream).collect());
        self.times = Some((report.at, report.times));
    }

    /// Takes the state of PHP. Findings stay until the next check.
    pub fn take_php(&mut self, report: PhpReport) {
        let known = match &mut self.php {
            Fetched::Loaded(before) => before.missing.take(),
            _ => None,
        };
        self.php = Fetched::Loaded(PhpReport {
            missing: report.missing.or(known),
            ..report
        });
    }
}

/// Returns an address without the default port of its scheme, which the server may add.
fn plain_address(address: &str) -> &str {
    let address = address.trim_end_matches('/');
    let port = if address.starts_with("https://") { ":443" } else { ":80" };
    address.strip_suffix(port).unwrap_or(address)
}

/// Returns how likely a website uses a pool; `None` if its version or account differs. A website uses a pool that is
/// named after it, such as `8.2/shop.example`, else the newest. Of these, one without settings of its own is more
/// likely than one that is named after another website.
fn pool_rank(pool: &PhpPoolSummary, found: &SiteUse) -> Option<(bool, Vec<u32>, bool)> {
    let wanted = found.php.as_deref()?;
    let is_version = wanted == "auto"
        || pool.version == wanted
        || pool
            .version
            .strip_prefix(wanted)
            .is_some_and(|rest| rest.starts_with('.'));
    let site = pool.name.split_once('/').map(|(_, site)| site);
    let is_own = site.is_some_and(|site| site.split('#').next() == Some(&found.site));
    (is_version && pool.user == found.user).then(|| (is_own, version_numbers(&pool.version), site.is_none()))
}

/// Returns the numbers of a version such as `8.10`. A part that is no number counts as 0.
pub(super) fn version_numbers(version: &str) -> Vec<u32> {
    version
        .split('.')
        .map(|part| part.parse().unwrap_or_default())
        .collect()
}

impl Services {
    /// Returns the command that installs the first missing version of PHP, which the server suggests in backquotes.
    /// Only a plain installation of packages is returned, because the user pastes it into a terminal, and a server
    /// elsewhere could send anything.
    pub fn install_command(&self) -> Option<&str> {
        let Fetched::Loaded(php) = &self.php else {
            return None;
        };
        let missing = php.missing.as_ref()?;
        let suggested = missing.iter().find_map(|finding| finding.split('`').nth(1))?;
        is_installation(suggested).then_some(suggested)
    }
}

/// Returns true for `apt install` with names of packages.
fn is_installation(command: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
    };
    let packages = command.strip_prefix("apt install ");
    packages.is_some_and(|packages| packages.split(' ').all(is_name))
}
