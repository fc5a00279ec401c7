//! Queries about servers that requests are forwarded to, about PHP, and about the websites that use them.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use rocknet_control::api::Request;
use rocknet_control::ban::{BanList, OffenderSummary};
use rocknet_control::doctor::{DoctorCheck, DoctorVerdict};
use rocknet_control::explanation::ExplainedSetting;
use rocknet_control::route::{SiteDetail, SiteName};
use rocknet_control::{Client, ClientError, SiteKind, SiteSummary};

use super::machine::Machine;
use crate::job::{BanReport, MAX_BANS, PhpReport, ResponseTimes, SiteUse, UpstreamReport};

/// Metric with the response times of servers.
const RESPONSE_TIMES: &str = "rocknet_upstream_response_duration_seconds";

/// Maximum number of websites whose settings are queried: each is a request.
const MAX_DETAILS: usize = 500;

/// Queries the servers that requests are forwarded to, with their response times.
///
/// # Errors
///
/// Returns the error of the server or of the connection.
pub fn upstreams(client: &mut Client, at: Duration) -> Result<UpstreamReport, ClientError> {
    let list = client.call(&Request::Upstreams)?;
    let metrics = client.text(&Request::Metrics)?;
    Ok(UpstreamReport {
        at,
        list,
        times: response_times(&metrics),
    })
}

/// Queries the bans, and the clients with the most offences.
///
/// # Errors
///
/// Returns the error of the server or of the connection.
pub fn bans(client: &mut Client) -> Result<BanReport, ClientError> {
    let list: BanList = client.call(&Request::Bans)?;
    let mut offenders: Vec<OffenderSummary> = client.call(&Request::Offenders)?;
    offenders.retain(|client| !client.is_banned);
    let BanList { total, mut bans, .. } = list;
    bans.truncate(MAX_BANS);
    Ok(BanReport { total, bans, offenders })
}

/// Queries the pools of PHP. `with_checks`: queries the versions that are missing as well.
///
/// # Errors
///
/// Returns the error of the server or of the connection.
pub fn php(client: &mut Client, machine: &Machine, with_checks: bool) -> Result<PhpReport, ClientError> {
    let pools = client.call(&Request::PhpPools)?;
    let is_missing = |check: &DoctorCheck| check.check == "PHP" && check.verdict != DoctorVerdict::Good;
    let missing = match with_checks {
        true => {
            let checks: Vec<DoctorCheck> = client.call(&Request::Doctor)?;
            let missing = checks.into_iter().filter(is_missing);
            Some(missing.map(|check| check.found).collect())
        }
        false => None,
    };
    Ok(PhpReport {
        pools,
        installed: machine.php_versions(),
        missing,
    })
}

/// Query of the websites that use PHP or other servers: a request for each website. It is carried out in parts, so that
/// hundreds of websites do not keep the worker from other jobs.
#[derive(Debug, Default)]
pub struct UsesQuery {
    /// Names of the websites that are left.
    names: VecDeque<String>,
    found: Vec<SiteUse>,
}

impl UsesQuery {
    /// Creates the query for a list of websites.
    pub fn new(sites: &[SiteSummary]) -> UsesQuery {
        let wanted = sites.iter().filter(|site| may_use(site)).take(MAX_DETAILS);
        UsesQuery {
            names: wanted.map(|site| site.name.clone()).collect(),
            found: Vec::new(),
        }
    }

    /// Sends requests until `deadline`, at least one. Returns the result once all are done.
    ///
    /// # Errors
    ///
    /// Returns the error of the server or of the connection. A website that was disabled or removed meanwhile is left
    /// out.
    pub fn step(&mut self, client: &mut Client, deadline: Instant) -> Result<Option<Vec<SiteUse>>, ClientError> {
        while let Some(name) = self.names.pop_front() {
            match client.call::<SiteDetail>(&Request::Site(SiteName { name })) {
                Ok(detail) => self.found.extend(uses_of(&detail)),
                Err(ClientError::Api(error)) if matches!(error.status, 404 | 409) => {}
                Err(error) => return Err(error),
            }
            if Instant::now() >= deadline && !self.names.is_empty() {
                return Ok(None);
            }
        }
        Ok(Some(std::mem::take(&mut self.found)))
    }
}

/// Returns true if the website or one of its routes may use PHP or another server. Websites of the kind `Files` may use
/// PHP. Left out are disabled websites, and those with a welcome page only.
fn may_use(site: &SiteSummary) -> bool {
    !(site.disabled || site.kind == SiteKind::Welcome && site.routes == 0)
}

fn uses_of(detail: &SiteDetail) -> Vec<SiteUse> {
    let site = &detail.summary.name;
    let own = use_of(site, "", &detail.settings);
    let routes = detail.routes.iter().map(|route| {
        let found = use_of(site, &route.summary.pattern, &route.settings);
        // The account is inherited, and only differences are in the settings of a route.
        SiteUse {
            user: found.user.or_else(|| own.user.clone()),
            ..found
        }
    });
    let all = std::iter::once(own.clone()).chain(routes);
    all.filter(|found| found.php.is_some() || !found.servers.is_empty())
        .collect()
}

fn use_of(site: &str, route: &str, settings: &[ExplainedSetting]) -> SiteUse {
    let value = |key: &str| {
        let mut values = settings.iter().filter(|setting| setting.key == key);
        values.next().map_or("", |setting| &setting.value)
    };
    let first = |key: &str| strings(value(key)).into_iter().next();
    SiteUse {
        site: site.to_owned(),
        route: route.to_owned(),
        php: first("php"),
        user: first("user"),
        servers: strings(value("proxy"))
            .into_iter()
            // The value may have tables, whose other strings are no addresses.
            .filter(|text| text.contains("://") || text.starts_with("unix:"))
            .collect(),
    }
}

/// Returns the strings in a value of TOML, in their order. Values of the server have no escapes in addresses.
fn strings(value: &str) -> Vec<String> {
    value.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the response times by address in metrics of the OpenMetrics format.
fn response_times(metrics: &str) -> BTreeMap<String, ResponseTimes> {
    let mut times: BTreeMap<String, ResponseTimes> = BTreeMap::new();
    for line in metrics.lines() {
        let Some(rest) = line.strip_prefix(RESPONSE_TIMES) else {
            continue;
        };
        let Some((part, rest)) = rest.split_once("{upstream=\"") else {
            continue;
        };
        let Some((address, value)) = rest.rsplit_once("\"} ") else {
            continue;
        };
        // Buckets are left out, and have another label after the address.
        if !matches!(part, "_count" | "_sum") {
            continue;
        }
        let entry = times.entry(address.replace("\\\\", "\\")).or_default();
        match part {
            "_count" => entry.count = value.parse().unwrap_or_default(),
            _ => entry.seconds = value.parse().unwrap_or_default(),
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocknet_control::route::RouteDetail;
    use rocknet_control::site::RouteSummary;

    #[test]
    fn response_times_are_read_from_the_metrics() {
        let metrics = "\
# TYPE rocknet_upstream_response_duration_seconds histogram
rocknet_upstream_response_duration_seconds_bucket{upstream=\"http://a:1\",le=\"0.001024\"} 3
rocknet_upstream_response_duration_seconds_count{upstream=\"http://a:1\"} 4
rocknet_upstream_response_duration_seconds_sum{upstream=\"http://a:1\"} 0.5
rocknet_upstream_response_duration_seconds_count{upstream=\"php:8.2\"} 1
rocknet_upstream_up{upstream=\"http://b\"} 1
# EOF
";
        let times = response_times(metrics);
        let expected = ResponseTimes { count: 4, seconds: 0.5 };
        assert_eq!(times["http://a:1"], expected);
        assert_eq!((times.len(), times["php:8.2"].count), (2, 1));
    }

    #[test]
    fn uses_are_read_from_the_settings() {
        let setting = |key: &str, value: &str| ExplainedSetting {
            key: key.to_owned(),
            value: value.to_owned(),
            position: None,
        };
        let route = |pattern: &str, settings| RouteDetail {
            summary: RouteSummary {
                pattern: pattern.to_owned(),
                ..RouteSummary::default()
            },
            settings,
            ..RouteDetail::default()
        };
        let detail = SiteDetail {
            summary: SiteSummary {
                name: "a.test".to_owned(),
                ..SiteSummary::default()
            },
            settings: vec![
                setting("root", "\"/w\""),
                setting("php", "\"8.2\""),
                setting("user", "\"alice\""),
            ],
            routes: vec![
                route(
                    "/api/*",
                    vec![setting(
                        "proxy",
                        "[\"http://b:80\", { url = \"http://c:80\", zone = \"x\" }]",
                    )],
                ),
                route(
                    "/off/*",
                    vec![setting("proxy", "false"), setting("root", "\"http://x\"")],
                ),
            ],
            ..SiteDetail::default()
        };
        let uses = uses_of(&detail);
        assert_eq!(uses.len(), 2);
        assert_eq!(
            (uses[0].php.as_deref(), uses[0].user.as_deref()),
            (Some("8.2"), Some("alice"))
        );
        assert_eq!(
            (&*uses[1].route, &uses[1].servers[..]),
            ("/api/*", &["http://b:80".to_owned(), "http://c:80".to_owned()][..])
        );
        assert_eq!(uses[1].user.as_deref(), Some("alice"));
    }
}
