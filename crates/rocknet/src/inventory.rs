//! Certificates, upstreams, PHP pools, routes and metrics of a running server, for the control API.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use rocknet_config::model::{self, Amount, HostPattern, Mode};
use rocknet_control::route::RouteTraffic;
use rocknet_control::{CertificateSummary, PhpPoolSummary, PhpState, UpstreamState, UpstreamSummary};

use crate::certificates::{Authority, Certificate, CertificateStore, SecureSite};
use crate::clock::uptime_ms;
use crate::exposition::{self, Authentication, LimitSample, Measured, Totals};
use crate::gateway::php::PoolReport;
use crate::limits::LimitState;
use crate::metrics::{Metrics, RouteLabel, WorkerCounters};
use crate::proxy::Upstream;
use crate::report;
use crate::server::Server;

/// Returns the metrics in the text format of OpenMetrics.
pub fn metrics(server: &Server) -> String {
    let metrics = server.metrics();
    let labels = &server.registries().routes;
    let routes = metrics.routes().into_iter();
    let spans = server.registries().traces.counters();
    let disk = server.registries().responses.disk();
    exposition::render(&Measured {
        routes: routes
            .filter_map(|(number, counters)| Some((labels.label(number)?, counters)))
            .collect(),
        limits: limits(server),
        totals: Totals {
            failed_reloads: server.failed_reloads(),
            spans: (spans.exported(), spans.dropped()),
            stored_requests: server.registries().responses.counters.by_site(),
            authentication: Authentication::of(&server.registries().auth_counters),
            stored_disk: disk.as_ref().map(|disk| disk.usage()),
            stored_disk_sites: disk.map(|disk| disk.limited_sites()).unwrap_or_default(),
            bans: server.registries().bans.counters(),
            ..totals(metrics)
        },
        upstream_durations: metrics.upstreams(),
        status: server.status(),
        upstreams: upstreams(server),
        certificates: certificates(server),
        php: php_pools(server),
    })
}

/// Returns the counters of the routes with requests, the busiest first.
pub fn routes(server: &Server) -> Vec<RouteTraffic> {
    report::routes(server.metrics(), &server.registries().routes)
}

/// Returns the counters of the limits of requests.
fn limits(server: &Server) -> Vec<LimitSample> {
    let states = server.registries().limits.all();
    let sample = |state: &Arc<LimitState>| LimitSample {
        label: RouteLabel {
            site: Arc::clone(&state.id.site),
            route: Arc::clone(&state.id.route),
        },
        amount: state.id.amount.to_string(),
        // Without a configured key, requests count by client.
        key: state.id.key.as_deref().unwrap_or("{client.ip}").to_owned(),
        requests: [&state.refused, &state.delayed, &state.dry_run].map(|counter| counter.load(Ordering::Relaxed)),
    };
    let is_of_requests = |state: &&Arc<LimitState>| !matches!(state.id.amount, Amount::Bandwidth(_));
    states.iter().filter(is_of_requests).map(sample).collect()
}

/// Returns the totals that are sums of the counters of all workers.
fn totals(metrics: &Metrics) -> Totals {
    let sum = |which: fn(&WorkerCounters) -> u64| metrics.sum(which);
    Totals {
        handshakes: [
            sum(|worker| worker.handshakes.full.get()),
            sum(|worker| worker.handshakes.resumed.get()),
            sum(|worker| worker.handshakes.failed.get()),
        ],
        worker_restarts: sum(|worker| worker.restarts.get()),
        panics: sum(|worker| worker.panics.get()),
        ..Totals::default()
    }
}

/// Returns the pools of PHP that the server runs.
pub fn php_pools(server: &Server) -> Vec<PhpPoolSummary> {
    let summary = |pool: PoolReport| PhpPoolSummary {
        state: match (pool.is_ready, &pool.fault) {
            _ if pool.is_stopped => PhpState::Stopped,
            (true, _) => PhpState::Ready,
            (false, None) => PhpState::Starting,
            (false, Some(_)) => PhpState::Failed,
        },
        name: pool.name,
        version: pool.version,
        user: pool.user,
        socket: pool.socket,
        processes: pool.processes,
        restarts: pool.restarts,
        fault: pool.fault,
    };
    server.php().report().into_iter().map(summary).collect()
}

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Returns the certificates of all sites with TLS, in the order of the sites. A site without a certificate has an entry
/// without names.
pub fn certificates(server: &Server) -> Vec<CertificateSummary> {
    let (snapshot, store, now) = (server.snapshot(), &server.certificates().store, SystemTime::now());
    let sites = snapshot.config.sites.iter().zip(&snapshot.sites);
    sites
        .filter_map(|(site, built)| Some((site, built.secure.as_ref()?)))
        .flat_map(|(site, secure)| of_site(site, secure, store, snapshot.config.server.mode, now))
        .collect()
}

/// Returns the certificates of one site, or an entry without names if the site has none.
fn of_site(
    site: &model::Site,
    secure: &SecureSite,
    store: &CertificateStore,
    mode: Mode,
    now: SystemTime,
) -> Vec<CertificateSummary> {
    let names: Vec<String> = site.names.iter().map(name).collect();
    // Returns the source of a certificate for these names; `None` if the site has no TLS settings.
    let source = |names: &[String]| {
        let tls = site.tls.as_ref()?;
        // A site without names has a certificate for the loopback names.
        let name = names.first().map_or("localhost", String::as_str);
        Some(match Authority::of(&tls.source, mode, name) {
            None => "files".to_owned(),
            Some(Authority::Local) => "local".to_owned(),
            Some(Authority::Acme) => "acme".to_owned(),
        })
    };
    let certificates = secure.certificates(store, &names);
    let fault = secure.error();
    let base = CertificateSummary {
        site: site.name.clone(),
        source: source(&names).unwrap_or_default(),
        fault,
        ..CertificateSummary::default()
    };
    if certificates.is_empty() {
        let fault = base.fault.clone().unwrap_or_else(|| "it is not issued yet".to_owned());
        return vec![CertificateSummary {
            fault: Some(fault),
            ..base
        }];
    }
    let of = |certificate: &Certificate| {
        let not_after = unix(certificate.not_after());
        CertificateSummary {
            source: source(certificate.names()).unwrap_or_else(|| base.source.clone()),
            names: certificate.names().to_vec(),
            issuer: certificate.issuer(),
            not_before: unix(certificate.not_before()),
            not_after,
            days_left: (signed(not_after) - signed(unix(now))).div_euclid(DAY),
            ..base.clone()
        }
    };
    certificates.iter().map(of).collect()
}

/// Returns a name of a site as the configuration writes it.
fn name(pattern: &HostPattern) -> String {
    match pattern {
        HostPattern::Exact(name) => name.clone(),
        HostPattern::Wildcard(name) => format!("*.{name}"),
    }
}

/// Returns the seconds since the beginning of 1970; 0 for an earlier time.
fn unix(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns seconds as a signed number, so that a difference may be negative.
fn signed(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// Returns the upstreams that the configuration uses, in the order of their addresses.
pub fn upstreams(server: &Server) -> Vec<UpstreamSummary> {
    let now_ms = uptime_ms();
    let summary = |upstream: &Upstream| UpstreamSummary {
        address: upstream.name.to_string(),
        state: if upstream.is_drained() {
            UpstreamState::Drained
        } else if upstream.is_unhealthy() {
            UpstreamState::Down
        } else if upstream.is_available(now_ms) {
            UpstreamState::Up
        } else {
            UpstreamState::Paused
        },
        in_flight: upstream.requests_in_flight(),
    };
    let upstreams = &server.registries().upstreams;
    upstreams.in_use().iter().map(|upstream| summary(upstream)).collect()
}
