//! Metrics in the text format of OpenMetrics 1.0, which Prometheus reads.

mod authentication;
mod page;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rocknet_cache::disk::{DiskUsage, SiteDiskUsage};
use rocknet_control::status::{Protocols, ResponseCache};
use rocknet_control::{CertificateSummary, PhpPoolSummary, PhpState, Status, UpstreamState, UpstreamSummary};

use self::page::Page;
use crate::bans::BanCounters;
use crate::metrics::{Counter, Histogram, RouteCounters, RouteLabel};
use crate::outcomes::SiteOutcomes;

pub use self::authentication::Authentication;
use self::authentication::{authentication, outcomes};

/// Maximum number of upstreams that have samples, so that the output is bounded. The same maximum applies to limits,
/// certificates, pools of PHP, and sites with a quota on disk.
const MAX_LISTED: usize = 1000;

/// State of a server that the metrics show.
#[derive(Default)]
pub struct Measured {
    /// State and counters.
    pub status: Status,
    /// Counters by route, whose number is bounded by [`RouteLabels`](crate::metrics::RouteLabels).
    pub routes: BTreeMap<RouteLabel, RouteCounters>,
    /// Limits of requests.
    pub limits: Vec<LimitSample>,
    /// Counters that `status` does not contain.
    pub totals: Totals,
    /// Response times of upstreams and applications by address.
    pub upstream_durations: HashMap<Arc<str>, Histogram>,
    /// Upstreams of the proxy.
    pub upstreams: Vec<UpstreamSummary>,
    /// Certificates of the sites.
    pub certificates: Vec<CertificateSummary>,
    /// Pools of PHP that the server runs.
    pub php: Vec<PhpPoolSummary>,
}

/// A limit of requests with its counters.
#[derive(Debug, Clone)]
pub struct LimitSample {
    /// Site and route that have the limit.
    pub label: RouteLabel,
    /// Limited rate or number of connections, as text.
    pub amount: String,
    /// Key as configured, such as `{client.ip}`: requests with the same value of its placeholders count together.
    pub key: String,
    /// Numbers of requests that were refused, that were delayed, and that would have been refused or delayed without
    /// `dry_run`.
    pub requests: [u64; 3],
}

/// Counters of the server that only the metrics show.
#[derive(Default)]
pub struct Totals {
    /// TLS handshakes: full, resumed and failed.
    pub handshakes: [u64; 3],
    /// Restarts of failed workers.
    pub worker_restarts: u64,
    /// Panics that ended one request each.
    pub panics: u64,
    /// Configurations that were refused.
    pub failed_reloads: u64,
    /// Spans that collectors have accepted, and spans that were lost.
    pub spans: (u64, u64),
    /// Stored responses on disk, if the server stores some there.
    pub stored_disk: Option<DiskUsage>,
    /// Sites with a quota for stored responses on disk.
    pub stored_disk_sites: Vec<SiteDiskUsage>,
    /// Requests to the cached routes of each site.
    pub stored_requests: Vec<SiteOutcomes>,
    /// Forward authentication, logins and signed URLs.
    pub authentication: Authentication,
    /// Bans of clients.
    pub bans: BanCounters,
}

/// Writes the metrics.
pub fn render(measured: &Measured) -> String {
    let mut page = Page::new();
    process(&mut page, measured);
    connections(&mut page, measured);
    requests(&mut page, measured);
    routes(&mut page, &measured.routes);
    limits(&mut page, &measured.limits);
    upstreams(&mut page, measured);
    certificates(&mut page, &measured.certificates);
    php(&mut page, &measured.php);
    cache_and_log(&mut page, &measured.status);
    stored_responses(
        &mut page,
        &measured.status.response_cache,
        &measured.totals.stored_requests,
    );
    let (disk, disk_sites) = (&measured.totals.stored_disk, &measured.totals.stored_disk_sites);
    stored_on_disk(&mut page, disk.as_ref(), disk_sites);
    authentication(&mut page, &measured.totals.authentication);
    bans(&mut page, &measured.totals.bans);
    reloads(&mut page, measured);
    spans(&mut page, measured.totals.spans);
    page.finish()
}

fn process(page: &mut Page, measured: &Measured) {
    let status = &measured.status;
    page.family("rocknet_build", "info", "", "Version of the server.");
    page.sample("rocknet_build_info", &[("version", &status.version)], 1);
    let name = "rocknet_uptime_seconds";
    page.gauge(name, "seconds", "Time since the start.", status.uptime_s);
    let name = "rocknet_cpu_seconds";
    page.counter(name, "seconds", "CPU time of all threads.", status.cpu_ms as f64 / 1e3);
    let name = "rocknet_memory_bytes";
    page.gauge(name, "bytes", "Resident memory.", status.memory_bytes);
    page.gauge("rocknet_workers", "", "Workers of all listeners.", status.workers);
    let help = "Restarts of workers after a failure.";
    page.counter("rocknet_worker_restarts", "", help, measured.totals.worker_restarts);
    let help = "Panics, each of which ended one request.";
    page.counter("rocknet_request_panics", "", help, measured.totals.panics);
}

fn connections(page: &mut Page, measured: &Measured) {
    let (status, totals) = (&measured.status, &measured.totals);
    let Protocols { http1, http2, http3 } = status.protocols;
    let versions = [("1", http1), ("2", http2), ("3", http3)];
    let name = "rocknet_connections_open";
    page.gauge(name, "", "Open connections.", status.connections_open);
    let name = "rocknet_connections";
    page.counter(name, "", "Accepted connections.", status.connections_total);
    // Includes QUIC connections during their handshake. The families by version count a connection once its version is
    // known.
    let name = "rocknet_http3_connections_open";
    page.gauge(name, "", "Open connections of HTTP/3.", status.http3_open);
    let help = "Open connections by major version of HTTP.";
    page.family("rocknet_protocol_connections_open", "gauge", "", help);
    for (version, connections) in versions {
        page.sample(
            "rocknet_protocol_connections_open",
            &[("version", version)],
            connections.open,
        );
    }
    let help = "Connections that spoke a major version of HTTP.";
    page.family("rocknet_protocol_connections", "counter", "", help);
    for (version, connections) in versions {
        page.sample(
            "rocknet_protocol_connections_total",
            &[("version", version)],
            connections.total,
        );
    }
    let help = "TLS handshakes, including those of HTTP/3, by result.";
    page.family("rocknet_tls_handshakes", "counter", "", help);
    for (result, total) in ["full", "resumed", "failed"].iter().zip(totals.handshakes) {
        page.sample("rocknet_tls_handshakes_total", &[("result", result)], total);
    }
    let help = "Open tunnels, such as WebSocket.";
    page.gauge("rocknet_tunnels_open", "", help, status.tunnels_open);
}

fn requests(page: &mut Page, measured: &Measured) {
    let status = &measured.status;
    page.counter("rocknet_requests", "", "Received requests.", status.requests);
    let help = "Responses by the first digit of their status.";
    page.family("rocknet_responses", "counter", "", help);
    // `Status` does not count 1xx. Upgrades (101) are in `rocknet_route_responses`.
    for (class, count) in [
        ("2xx", status.responses.successful),
        ("3xx", status.responses.redirection),
        ("4xx", status.responses.client_error),
        ("5xx", status.responses.server_error),
    ] {
        page.sample("rocknet_responses_total", &[("class", class)], count);
    }
    let name = "rocknet_sent_bytes";
    page.counter(name, "bytes", "Bytes sent to clients.", status.bytes_sent);
}

/// Writes the counters of routes. A class of responses that a route has never sent has no sample.
fn routes(page: &mut Page, routes: &BTreeMap<RouteLabel, RouteCounters>) {
    let help = "Responses of a route by the first digit of their status.";
    page.family("rocknet_route_responses", "counter", "", help);
    for (label, counters) in routes {
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(&counters.responses);
        for (class, count) in classes.map(|(class, counter)| (class, counter.get())) {
            if count > 0 {
                let labels = [("site", &*label.site), ("route", &*label.route), ("class", class)];
                page.sample("rocknet_route_responses_total", &labels, count);
            }
        }
    }
    let mut bytes = |name: &str, help: &str, which: fn(&RouteCounters) -> &Counter| {
        page.family(name, "counter", "bytes", help);
        let sample = format!("{name}_total");
        for (label, counters) in routes {
            let labels = [("site", &*label.site), ("route", &*label.route)];
            page.sample(&sample, &labels, which(counters).get());
        }
    };
    bytes(
        "rocknet_route_sent_bytes",
        "Bytes of response bodies of a route.",
        |counters| &counters.sent_bytes,
    );
    bytes(
        "rocknet_route_received_bytes",
        "Bytes of request bodies of a route.",
        |counters| &counters.received_bytes,
    );
    let name = "rocknet_response_duration_seconds";
    let help = "Time from a request until its response was queued.";
    page.family(name, "histogram", "seconds", help);
    for (label, counters) in routes {
        let labels = [("site", &*label.site), ("route", &*label.route)];
        page.histogram(name, &labels, &counters.durations);
    }
}

/// Writes the counters of limits. Limits of a route that differ only in `burst` or `delay` are added up.
fn limits(page: &mut Page, limits: &[LimitSample]) {
    let mut sums: BTreeMap<_, [u64; 3]> = BTreeMap::new();
    for limit in limits.iter().take(MAX_LISTED) {
        let labels = (&*limit.label.site, &*limit.label.route, &*limit.amount, &*limit.key);
        let sum = sums.entry(labels).or_default();
        for (sum, requests) in sum.iter_mut().zip(limit.requests) {
            *sum += requests;
        }
    }
    let help = "Requests above a limit by its effect: `refused`, `delayed`, or `dry_run` for none.";
    page.family("rocknet_limited_requests", "counter", "", help);
    for ((site, route, amount, key), requests) in sums {
        for (effect, requests) in ["refused", "delayed", "dry_run"].into_iter().zip(requests) {
            let labels = [
                ("site", site),
                ("route", route),
                ("limit", amount),
                ("key", key),
                ("effect", effect),
            ];
            page.sample("rocknet_limited_requests_total", &labels, requests);
        }
    }
}

/// Writes the states of upstreams. Several routes may use the same address with different settings. The requests of
/// these upstreams are added up, and the address is up if one of them is up.
fn upstreams(page: &mut Page, measured: &Measured) {
    let mut by_address: BTreeMap<&str, (bool, u64)> = BTreeMap::new();
    for upstream in measured.upstreams.iter().take(MAX_LISTED) {
        let (is_up, in_flight) = by_address.entry(&upstream.address).or_default();
        *is_up |= upstream.state == UpstreamState::Up;
        *in_flight += upstream.in_flight;
    }
    let help = "1 if the upstream gets new requests; 0 if it is down, paused or drained.";
    page.family("rocknet_upstream_up", "gauge", "", help);
    for (address, (is_up, _)) in &by_address {
        page.sample("rocknet_upstream_up", &[("upstream", address)], u64::from(*is_up));
    }
    let help = "Requests and tunnels in progress at the upstream.";
    page.family("rocknet_upstream_requests", "gauge", "", help);
    for (address, (_, in_flight)) in &by_address {
        page.sample("rocknet_upstream_requests", &[("upstream", address)], in_flight);
    }
    let name = "rocknet_upstream_response_duration_seconds";
    let help = "Time from a request to an upstream or application until the head of its response.";
    page.family(name, "histogram", "seconds", help);
    let durations: BTreeMap<_, _> = measured.upstream_durations.iter().collect();
    for (address, histogram) in durations.into_iter().take(MAX_LISTED) {
        page.histogram(name, &[("upstream", address)], histogram);
    }
}

/// Writes the expiry times of the sites' certificates. For a site with several certificates, writes the earliest
/// time.
fn certificates(page: &mut Page, certificates: &[CertificateSummary]) {
    let mut by_site: BTreeMap<&str, u64> = BTreeMap::new();
    // A certificate without names has not been issued yet.
    let issued = certificates.iter().filter(|certificate| !certificate.names.is_empty());
    for certificate in issued.take(MAX_LISTED) {
        let end = by_site.entry(&certificate.site).or_insert(certificate.not_after);
        *end = certificate.not_after.min(*end);
    }
    let name = "rocknet_certificate_expiry_timestamp_seconds";
    let help = "End of the validity of the site's certificate.";
    page.family(name, "gauge", "seconds", help);
    for (site, end) in by_site {
        page.sample(name, &[("site", site)], end);
    }
}

fn php(page: &mut Page, pools: &[PhpPoolSummary]) {
    let listed = || pools.iter().take(MAX_LISTED);
    let mut family = |name: &str, kind: &str, suffix: &str, help: &str, value: fn(&PhpPoolSummary) -> u64| {
        page.family(name, kind, "", help);
        let sample = format!("{name}{suffix}");
        for pool in listed() {
            page.sample(&sample, &[("pool", &pool.name)], value(pool));
        }
    };
    let help = "1 if the pool of PHP accepts requests.";
    family("rocknet_php_up", "gauge", "", help, |pool| {
        u64::from(pool.state == PhpState::Ready)
    });
    let help = "Processes of the pool of PHP.";
    family("rocknet_php_processes", "gauge", "", help, |pool| pool.processes);
    let help = "Restarts of the pool of PHP, after a failure or by an operator.";
    family("rocknet_php_restarts", "counter", "_total", help, |pool| pool.restarts);
}

fn cache_and_log(page: &mut Page, status: &Status) {
    let cache = &status.cache;
    page.gauge("rocknet_cache_files", "", "Files in the file cache.", cache.entries);
    let name = "rocknet_cache_bytes";
    page.gauge(name, "bytes", "Size of the file cache.", cache.bytes);
    let name = "rocknet_cache_hits";
    page.counter(name, "", "Lookups found in the file cache.", cache.hits);
    let name = "rocknet_cache_misses";
    page.counter(name, "", "Lookups not found in the file cache.", cache.misses);
    let name = "rocknet_log_dropped_records";
    page.counter(name, "", "Lost log records.", status.log_drops);
}

fn stored_responses(page: &mut Page, cache: &ResponseCache, requests: &[SiteOutcomes]) {
    let help = "URLs with stored responses in memory.";
    page.gauge("rocknet_stored_addresses", "", help, cache.addresses);
    let help = "Size of the stored responses in memory.";
    page.gauge("rocknet_stored_bytes", "bytes", help, cache.bytes);
    let help = "Requests to routes with a response cache, by outcome.";
    outcomes(page, "rocknet_stored_requests", help, "outcome", requests);
    let help = "Hits that a worker sent without a lookup, because they are frequent.";
    page.counter("rocknet_stored_ready_hits", "", help, cache.ready_hits);
}

/// Writes the state of the responses on disk; nothing if the server stores none there.
fn stored_on_disk(page: &mut Page, disk: Option<&DiskUsage>, sites: &[SiteDiskUsage]) {
    let Some(disk) = disk else { return };
    let help = "Stored responses on disk.";
    page.gauge("rocknet_stored_disk_responses", "", help, disk.objects);
    let help = "Size of the files with stored responses.";
    page.gauge("rocknet_stored_disk_bytes", "bytes", help, disk.size);
    let help = "Memory of the index of stored responses on disk.";
    page.gauge("rocknet_stored_disk_index_bytes", "bytes", help, disk.index);
    for (name, help, count) in [
        (
            "rocknet_stored_disk_hits",
            "Stored responses that were read from disk.",
            disk.hits,
        ),
        (
            "rocknet_stored_disk_writes",
            "Stored responses that were written to disk.",
            disk.written,
        ),
        (
            "rocknet_stored_disk_skipped",
            "Stored responses that were not written to disk: fresh for a short time, too large, or too many.",
            disk.skipped,
        ),
        (
            "rocknet_stored_disk_trimmed",
            "Stored responses that were dropped because their site has exceeded its quota on disk.",
            disk.trimmed,
        ),
        (
            "rocknet_stored_disk_busy",
            "Lookups of stored responses that did not wait for a busy disk.",
            disk.busy,
        ),
        (
            "rocknet_stored_disk_errors",
            "Failed reads and writes of stored responses, and damaged ones.",
            disk.errors,
        ),
    ] {
        page.counter(name, "", help, count);
    }
    let mut family = |name: &str, help: &str, value: fn(&SiteDiskUsage) -> u64| {
        page.family(name, "gauge", "bytes", help);
        for site in sites.iter().take(MAX_LISTED) {
            page.sample(name, &[("site", &site.site)], value(site));
        }
    };
    let help = "Size of the stored responses on disk of a site with a quota.";
    family("rocknet_stored_disk_site_bytes", help, |site| site.bytes);
    let help = "Quota of the stored responses on disk of a site.";
    family("rocknet_stored_disk_site_quota_bytes", help, |site| site.quota);
}

fn bans(page: &mut Page, bans: &BanCounters) {
    let help = "Bans of clients and networks in force, without the entries of ban-list files.";
    page.gauge("rocknet_bans", "", help, bans.active);
    let help = "Addresses and networks in ban-list files.";
    page.gauge("rocknet_ban_list_entries", "", help, bans.listed);
    let help = "Bans after offences, by kind of offence.";
    page.family("rocknet_bans_begun", "counter", "", help);
    for (offence, count) in &bans.by_offence {
        page.sample("rocknet_bans_begun_total", &[("offence", offence)], count);
    }
    let help = "Bans that offences would have led to without `dry_run`.";
    page.counter("rocknet_dry_run_bans", "", help, bans.dry_run);
    let help = "Connections that were closed because their client is banned.";
    page.counter("rocknet_banned_connections", "", help, bans.connections);
    let help = "Requests that were refused because their client is banned.";
    page.counter("rocknet_banned_requests", "", help, bans.requests);
}

fn reloads(page: &mut Page, measured: &Measured) {
    let status = &measured.status;
    let help = "Successful reloads of the configuration.";
    page.counter("rocknet_reloads", "", help, status.reloads);
    let help = "Configurations that were refused.";
    page.counter("rocknet_failed_reloads", "", help, measured.totals.failed_reloads);
    let help = "Configurations in memory: the current one, and older ones that are still in use.";
    page.gauge("rocknet_snapshots", "", help, status.snapshots);
    let help = "1 if the last reload was refused.";
    let is_failed = u64::from(status.last_reload_error.is_some());
    page.gauge("rocknet_last_reload_failed", "", help, is_failed);
}

fn spans(page: &mut Page, (exported, dropped): (u64, u64)) {
    let help = "Spans of traces that a collector has accepted.";
    page.counter("rocknet_trace_spans_exported", "", help, exported);
    let help = "Spans of traces that were lost: the queue was full, or a collector did not accept them.";
    page.counter("rocknet_trace_spans_dropped", "", help, dropped);
}
