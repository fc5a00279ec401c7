//! Reports about a running server: its state and counters, summaries and URLs of its sites, and the traffic of its
//! routes.

mod response_cache;
mod sockets;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rocknet_config::model::{self, HostPattern, Listen};
use rocknet_control::explanation::ConfigPosition;
use rocknet_control::route::RouteTraffic;
use rocknet_control::site::RouteSummary;
use rocknet_control::status::{ProtocolConnections, Protocols};
use rocknet_control::{Cache, Mode, Responses, SiteDurations, SiteKind, SiteSummary, Status};
use rocknet_io::socket::Address;
use rocknet_io::usage;

use crate::certificates::SecureSite;
use crate::clock::uptime_ms;
use crate::files::cache::CacheStatus;
use crate::handlers;
use crate::metrics::{Counter, Histogram, Merge, Metrics, RouteCounters, RouteLabel, RouteLabels, WorkerCounters};
use crate::site::Site;
use crate::snapshot::Snapshot;

pub use self::response_cache::response_cache;

/// A configured address, the bound address, and the number of workers that serve it.
pub type BoundListener = (Address, Address, usize);

/// Returns the state and counters of a server, except what [`Server::status`](crate::server::Server::status) adds from
/// other parts of the server. `http3`: configured addresses whose UDP ports are served.
pub fn status(
    snapshot: &Snapshot,
    bound: &[BoundListener],
    http3: &BTreeSet<Address>,
    (metrics, labels): (&Metrics, &RouteLabels),
    cache: &CacheStatus,
) -> Status {
    let sum = |which: fn(&WorkerCounters) -> u64| metrics.sum(which);
    let class = |class: usize| metrics.sum(|worker| worker.responses[class - 1].get());
    // `opened` is read after `closed`, and a connection is counted as opened before it is counted as closed, so the
    // difference is not negative. The subtraction saturates all the same, because relaxed reads are not ordered.
    let closed = sum(|worker| worker.connections_closed.get());
    let opened = sum(|worker| worker.connections_total.get());
    let quic_closed = sum(|worker| worker.quic_closed.get());
    let quic_opened = sum(|worker| worker.quic_total.get());
    let tunnels_closed = sum(|worker| worker.tunnels_closed.get());
    let tunnels = sum(|worker| worker.tunnels_total.get());
    let sums = durations_by_site(metrics, labels);
    let secure = |configured: &Address| snapshot.listeners.get(configured).is_some_and(|sites| sites.secure);
    let mut listeners: Vec<_> = bound
        .iter()
        .map(|(configured, address, _)| (configured, address))
        .collect();
    // Sorted by port. Unix sockets have no port and come last.
    listeners.sort_by_key(|(_, address)| (address.port().is_none(), address.port()));
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        uptime_s: uptime_ms() / 1000,
        cpu_ms: u64::try_from(usage::cpu_time().as_millis()).unwrap_or(u64::MAX),
        memory_bytes: usage::resident_memory().unwrap_or(0),
        mode: match snapshot.config.server.mode {
            model::Mode::Prod => Mode::Prod,
            model::Mode::Dev => Mode::Dev,
        },
        listeners: listeners
            .iter()
            .map(|(configured, address)| listener_url(address, secure(configured)))
            .collect(),
        sockets: listeners
            .iter()
            .map(|(configured, address)| sockets::listening_socket(configured, address, http3.contains(*configured)))
            .collect(),
        workers: bound.iter().map(|(.., workers)| workers).sum(),
        worker_restarts: sum(|worker| worker.restarts.get()),
        connections_open: opened.saturating_sub(closed),
        connections_total: opened,
        protocols: protocols(metrics),
        // Includes connections during their handshake, unlike `protocols.http3`.
        http3_open: quic_opened.saturating_sub(quic_closed),
        tunnels_open: tunnels.saturating_sub(tunnels_closed),
        requests: sum(|worker| worker.requests.get()),
        load: metrics.recent_load(),
        bytes_sent: sum(|worker| worker.bytes_sent.get()),
        responses: Responses {
            successful: class(2),
            redirection: class(3),
            client_error: class(4),
            server_error: class(5),
        },
        durations: durations(snapshot, &sums),
        duration_counts: duration_counts(&sums),
        cache: Cache {
            entries: cache.entries.load(Ordering::Relaxed),
            bytes: cache.bytes.load(Ordering::Relaxed),
            hits: sum(|worker| worker.cache_hits.get()),
            misses: cache.misses.load(Ordering::Relaxed),
        },
        ..Status::default()
    }
}

/// Returns the connections by version of HTTP.
fn protocols(metrics: &Metrics) -> Protocols {
    // The closed connections are read first, so that no difference is negative.
    let of = |version: usize| {
        let closed = metrics.sum(|worker| worker.versions_closed[version].get());
        let total = metrics.sum(|worker| worker.versions_total[version].get());
        ProtocolConnections {
            open: total.saturating_sub(closed),
            total,
        }
    };
    Protocols {
        http1: of(0),
        http2: of(1),
        http3: of(2),
    }
}

/// Maximum number of sites with durations: `status` is a short overview, and a server may have ten thousand sites.
const MAX_TIMED_SITES: usize = 32;

/// Returns the response durations since the start of the server, by name of the site.
fn durations_by_site(metrics: &Metrics, labels: &RouteLabels) -> HashMap<Arc<str>, Histogram> {
    let mut sums: HashMap<Arc<str>, Histogram> = HashMap::new();
    for (number, counters) in metrics.routes() {
        if let Some(label) = labels.label(number) {
            sums.entry(label.site).or_default().merge(&counters.durations);
        }
    }
    sums
}

/// Returns the response durations of the sites with the most responses.
fn durations(snapshot: &Snapshot, sums: &HashMap<Arc<str>, Histogram>) -> Vec<SiteDurations> {
    let counted = |site: &Site| {
        let histogram = sums.get(&*site.name)?;
        Some(SiteDurations {
            site: site.name.clone(),
            responses: histogram.count(),
            p50_us: histogram.quantile(50),
            p99_us: histogram.quantile(99),
        })
    };
    let mut sites: Vec<_> = snapshot.sites.iter().filter_map(counted).collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.responses));
    sites.truncate(MAX_TIMED_SITES);
    sites
}

/// Binary logarithms of the bounds of [`Status::duration_counts`] in microseconds. The bounds go from 8 µs to 134 s,
/// each twice the previous one. Histograms put all durations above the last bound into the bucket below that bound.
const DURATION_BITS: std::ops::RangeInclusive<u32> = 3..=27;

/// Returns the number of responses of all sites below each of the bounds.
fn duration_counts(sums: &HashMap<Arc<str>, Histogram>) -> Vec<u64> {
    let below = |bits| sums.values().map(|histogram| histogram.count_below_power(bits)).sum();
    DURATION_BITS.map(below).collect()
}

/// Returns a summary of every site, disabled sites included, in the order of names.
pub fn sites(snapshot: &Snapshot, bound: &[BoundListener]) -> Vec<SiteSummary> {
    let folders = snapshot.missing_folders(MAX_FOLDERS_CHECKED);
    let all_routes: usize = snapshot.config.sites.iter().map(|site| site.routes.len()).sum();
    let summary = |(site, built): (&model::Site, &Site)| SiteSummary {
        name: site.name.clone(),
        urls: urls(site, bound),
        root: site.settings.root.clone(),
        routes: site.routes.len(),
        route_list: match all_routes {
            0..=MAX_LISTED_ROUTES => site.routes.iter().map(route_summary).collect(),
            _ => Vec::new(),
        },
        kind: kind(built),
        disabled: false,
        fault: site_fault(site, built, &folders),
    };
    let sites = snapshot.config.sites.iter().zip(&snapshot.sites);
    let disabled = snapshot.config.disabled_sites.iter().map(|site| SiteSummary {
        name: site.name.clone(),
        kind: SiteKind::Nothing,
        disabled: true,
        ..SiteSummary::default()
    });
    let mut all: Vec<SiteSummary> = sites.map(summary).chain(disabled).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Maximum number of routes of all sites together for which routes are listed. With more routes, the reply lists no
/// route and stays small.
const MAX_LISTED_ROUTES: usize = 10_000;

/// Returns the summary of a route.
pub fn route_summary(route: &model::Route) -> RouteSummary {
    let kind = match handlers::choose(&route.settings).kind {
        SiteKind::Nothing if !route.settings.redirects.is_empty() => SiteKind::Redirect,
        kind => kind,
    };
    RouteSummary {
        pattern: route.pattern.to_string(),
        kind,
        position: Some(ConfigPosition {
            file: route.span.file.clone(),
            line: route.span.line,
        }),
    }
}

/// Returns the counters of the routes with requests, the busiest first.
pub fn routes(metrics: &Metrics, labels: &RouteLabels) -> Vec<RouteTraffic> {
    let traffic = |(number, counters): (u32, RouteCounters)| {
        let RouteLabel { site, route } = labels.label(number)?;
        let durations = &counters.durations;
        Some(RouteTraffic {
            site: site.to_string(),
            route: route.to_string(),
            responses: counters.responses.iter().map(Counter::get).sum(),
            // Index 4 is the class 5xx.
            server_errors: counters.responses[4].get(),
            sent_bytes: counters.sent_bytes.get(),
            received_bytes: counters.received_bytes.get(),
            duration_counts: DURATION_BITS.map(|bits| durations.count_below_power(bits)).collect(),
        })
    };
    let mut routes: Vec<RouteTraffic> = metrics.routes().into_iter().filter_map(traffic).collect();
    routes.sort_by(|one, other| {
        let names = (&one.site, &one.route).cmp(&(&other.site, &other.route));
        other.responses.cmp(&one.responses).then(names)
    });
    routes
}

/// Returns the kind of handler at the root of a site, or `Routes` if only rules or routes below the root respond.
fn kind(built: &Site) -> SiteKind {
    // The routes with and without TLS differ only in their header fields.
    let root = &built.routes(true).root;
    match root.entry.kind {
        SiteKind::Nothing if built.serves() => SiteKind::Routes,
        kind => kind,
    }
}

/// Returns the reason why a site is not served as configured, if there is one.
fn site_fault(site: &model::Site, built: &Site, folders: &[(&str, &Path, io::Error)]) -> Option<String> {
    if let Some(error) = built.secure.as_ref().and_then(SecureSite::error) {
        let is_unavailable = built.secure.as_ref().is_some_and(SecureSite::is_unavailable);
        let what = if is_unavailable {
            "no TLS"
        } else {
            "the changed certificate files cannot be used, and the certificate in use stays"
        };
        return Some(format!("{what}: {error}"));
    }
    if let Some((_, folder, error)) = folders.iter().find(|(name, ..)| *name == site.name) {
        return Some(format!("its folder {} cannot be opened: {error}", folder.display()));
    }
    let is_idle = kind(built) == SiteKind::Nothing;
    is_idle.then(|| {
        format!(
            "it serves nothing: write root = \"FOLDER\" below [site.\"{}\"]",
            site.name
        )
    })
}

/// Maximum number of sites of a server whose folders are opened for a check; with more sites, no folder is checked.
/// Each check costs a descriptor and a disk access, and a start of the server, which includes the checks, must be fast.
pub const MAX_FOLDERS_CHECKED: usize = 256;

/// Returns a URL for each of the first `limit` sites, for the page that a client gets if no site has the requested
/// host. `configured`: address of the listener. `port`: port in the request. Sites without an HTTP URL, and those whose
/// port is not known, are left out.
pub fn first_urls(snapshot: &Snapshot, configured: &Address, port: u16, limit: usize) -> Vec<String> {
    // If the kernel chose the port of the listener, the port in the request is that port. The number of workers (0) is
    // not used.
    let bound: Vec<BoundListener> = match configured {
        Address::Tcp { ip, .. } => vec![(configured.clone(), Address::Tcp { ip: *ip, port }, 0)],
        Address::Unix(_) => Vec::new(),
    };
    let first = |site: &model::Site| {
        let mut urls = urls(site, &bound);
        urls.retain(|url| url.starts_with("http") && !url.ends_with(":0/"));
        (!urls.is_empty()).then(|| urls.swap_remove(0))
    };
    snapshot.config.sites.iter().take(limit).filter_map(first).collect()
}

/// Returns the URLs of a site: each of its names at each of its ports, in configuration order, then its Unix sockets.
/// For a site without names, the host is its address, or `localhost` if it listens on all addresses.
fn urls(site: &model::Site, bound: &[BoundListener]) -> Vec<String> {
    let mut urls = Vec::new();
    let sockets = site.listen.iter().filter(|listen| matches!(listen, Listen::Unix(_)));
    let names = site.names.iter().map(|name| match name {
        HostPattern::Exact(name) => Some(name.clone()),
        HostPattern::Wildcard(name) => Some(format!("*.{name}")),
    });
    let unnamed = site.names.is_empty().then_some(None);
    for name in names.chain(unnamed) {
        for listen in &site.listen {
            let Listen::Tcp { address, port } = listen else {
                continue;
            };
            let port = if *port == 0 {
                kernel_port(*address, bound)
            } else {
                *port
            };
            let host = name.clone().unwrap_or_else(|| host_name(*address));
            urls.push(url(&host, port, site.secure.contains(listen)));
        }
    }
    urls.extend(sockets.filter_map(|listen| match listen {
        Listen::Unix(path) => Some(format!("unix:{}", path.display())),
        Listen::Tcp { .. } => None,
    }));
    urls
}

/// Returns the port that the kernel chose for port 0 of an address; 0 if that address is not bound.
fn kernel_port(ip: Option<IpAddr>, bound: &[BoundListener]) -> u16 {
    let configured = Address::Tcp { ip, port: 0 };
    bound
        .iter()
        .find(|(address, ..)| *address == configured)
        .and_then(|(_, bound, _)| bound.port())
        .unwrap_or_default()
}

/// Returns the host by which a local client reaches `address`.
fn host_name(address: Option<IpAddr>) -> String {
    match address {
        Some(IpAddr::V6(ip)) if !ip.is_unspecified() => format!("[{ip}]"),
        Some(IpAddr::V4(ip)) if !ip.is_unspecified() => ip.to_string(),
        _ => "localhost".to_owned(),
    }
}

/// Returns the URL of a bound address. `secure`: true if its connections use TLS.
fn listener_url(address: &Address, secure: bool) -> String {
    match address {
        Address::Tcp { ip, port } => url(&host_name(*ip), *port, secure),
        Address::Unix(_) => address.to_string(),
    }
}

/// Returns an `http` or `https` URL. The default port of the scheme is left out.
fn url(host: &str, port: u16, secure: bool) -> String {
    match (secure, port) {
        (false, 80) => format!("http://{host}/"),
        (true, 443) => format!("https://{host}/"),
        (false, port) => format!("http://{host}:{port}/"),
        (true, port) => format!("https://{host}:{port}/"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rocknet_config::environment::MemoryEnvironment;

    use super::*;

    #[test]
    fn urls_combine_names_and_ports() {
        fn check(text: &str, expected: &[&str]) {
            let world = MemoryEnvironment {
                any_directory: true,
                ..MemoryEnvironment::default()
            };
            let text = format!("{text}\nroot = \"/w\"");
            let config = rocknet_config::parse(&text, Path::new("/r.toml"), &world)
                .unwrap()
                .config;
            // The kernel has chosen port 4711 for port 0 of 127.0.0.1.
            let configured = Address::Tcp {
                ip: Some([127, 0, 0, 1].into()),
                port: 0,
            };
            let bound = [(
                configured,
                Address::Tcp {
                    ip: Some([127, 0, 0, 1].into()),
                    port: 4711,
                },
                1,
            )];
            assert_eq!(urls(&config.sites[0], &bound), expected, "{text}");
        }
        // A site whose name is a host uses TLS at every port but 80. All other sites use no TLS here.
        check("[site.\":8081\"]", &["http://localhost:8081/"]);
        check("[site.\"127.0.0.1:0\"]", &["http://127.0.0.1:4711/"]);
        check("[site.\"[::1]:8081\"]", &["http://[::1]:8081/"]);
        check("[site.\"0.0.0.0:8081\"]", &["http://localhost:8081/"]);
        check("[site.\"a.test\"]\nlisten = 80", &["http://a.test/"]);
        check(
            "[site.\"a.test\"]\naliases = [\"*.a.test\"]\nlisten = [80, \"unix:/run/x\", 8080]",
            &[
                "http://a.test/",
                "https://a.test:8080/",
                "http://*.a.test/",
                "https://*.a.test:8080/",
                "unix:/run/x",
            ],
        );
        check("[site.default]\nlisten = \"127.0.0.1:0\"", &["http://127.0.0.1:4711/"]);
    }
}
