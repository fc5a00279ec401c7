//! Checks for conflicts between sites: the same name on the same listener, overlapping listeners, and listeners with
//! and without TLS.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::Path;

use crate::check::listen::SiteListener;
use crate::check::site::CheckedSite;
use crate::context::Check;
use crate::model::{HostPattern, Listen};
use crate::source::Span;

/// Reports the conflicts between all sites of the configuration.
pub(super) fn check(check: &mut Check<'_>, sites: &[CheckedSite]) {
    check_names(check, sites);
    check_overlaps(check, sites);
    check_schemes(check, sites);
}

/// Reports pairs of sites that have the same name on the same listener, or that both serve every name on the same
/// listener.
fn check_names(check: &mut Check<'_>, sites: &[CheckedSite]) {
    // First site for each listener and name. A name of `None` stands for every name.
    let mut taken: HashMap<(&Listen, Option<&HostPattern>), (&CheckedSite, Span)> = HashMap::new();
    // Each pair of sites is reported once, because it would conflict again on every common listener and name.
    let mut reported: HashSet<(&str, &str)> = HashSet::new();
    for site in sites {
        for SiteListener { listen, .. } in &site.listen {
            let names: Vec<_> = if site.names.is_empty() {
                vec![(None, site.header)]
            } else {
                site.names.iter().map(|(name, span)| (Some(name), *span)).collect()
            };
            for (name, span) in names {
                let Some((other, there)) = taken.get(&(listen, name)).copied() else {
                    taken.insert((listen, name), (site, span));
                    continue;
                };
                if !reported.insert((&other.site.name, &site.site.name)) {
                    continue;
                }
                let at = shown(listen);
                let message = match name {
                    Some(name) => format!(
                        "sites \"{}\" and \"{}\" both have the name {} on {at}",
                        other.site.name,
                        site.site.name,
                        host(name)
                    ),
                    None => format!(
                        "sites \"{}\" and \"{}\" are both for every name on {at}",
                        other.site.name, site.site.name
                    ),
                };
                let help = match name {
                    Some(_) => "give the name to one of them, or use different listeners",
                    None => "use another listener for one of them, or give it a host name",
                };
                check.conflict(span, ("the other is here", there), message, help);
            }
        }
    }
}

/// Reports a listener on `0.0.0.0` or `[::]` if another listener has the same port without an address, which stands
/// for every address. Listeners of such a port share one socket, and a listener on a single address gets the
/// connections to its address. No connection is to `0.0.0.0` or `[::]`, so a listener there would get none.
fn check_overlaps(check: &mut Check<'_>, sites: &[CheckedSite]) {
    let mut every_address: HashMap<u16, Span> = HashMap::new();
    for SiteListener { listen, span, .. } in sites.iter().flat_map(|site| &site.listen) {
        // Port 0 becomes a different port for each listener, so it never overlaps.
        if let Listen::Tcp { address: None, port } = listen
            && *port != 0
        {
            every_address.entry(*port).or_insert(*span);
        }
    }
    let mut reported: HashSet<&Listen> = HashSet::new();
    for SiteListener { listen, span, .. } in sites.iter().flat_map(|site| &site.listen) {
        let Listen::Tcp {
            address: Some(address),
            port,
        } = listen
        else {
            continue;
        };
        let is_every_address = match address {
            IpAddr::V4(v4) => v4.is_unspecified(),
            IpAddr::V6(v6) => v6.is_unspecified(),
        };
        let Some(there) = every_address
            .get(port)
            .filter(|_| is_every_address && !reported.contains(&listen))
        else {
            continue;
        };
        reported.insert(listen);
        let message = format!("{} overlaps with port {port} on every address", shown(listen));
        let help = format!("write {port} for both listeners, or name the addresses for both");
        check.conflict(*span, ("the other is here", *there), message, &help);
    }
}

/// Reports the first listener, or pair of overlapping listeners, that has sites with and without TLS. A port on every
/// address overlaps with the same port on a single address, because both share one socket. Such a mix is
/// impossible, because the server decides about TLS before it knows the site of a connection. Sites with an invalid
/// `tls` are skipped.
fn check_schemes(check: &mut Check<'_>, sites: &[CheckedSite]) {
    // The first listener with TLS (the flag is true) and the first listener without TLS, for each socket. Port 0
    // becomes a different port on each address, so its sockets do not overlap.
    let mut seen: HashMap<(SocketScope<'_>, bool), &SiteListener> = HashMap::new();
    let known = sites.iter().filter(|site| site.tls_is_known);
    for listener in known.flat_map(|site| &site.listen) {
        let other = |scope| seen.get(&(scope, !listener.secure));
        let scope = SocketScope::of(&listener.listen);
        let conflicting = match scope {
            SocketScope::Address(_, port) => {
                other(scope).or_else(|| other(SocketScope::EveryAddress(port)).filter(|_| port != 0))
            }
            SocketScope::EveryAddress(port) => {
                other(scope).or_else(|| other(SocketScope::SomeAddress(port)).filter(|_| port != 0))
            }
            SocketScope::SomeAddress(_) | SocketScope::Path(_) => other(scope),
        };
        if let Some(other) = conflicting {
            let (here, opposite) = match listener.secure {
                true => ("with TLS", "without TLS"),
                false => ("without TLS", "with TLS"),
            };
            let message = format!(
                "{} cannot be {here} for one site and {opposite} for another",
                shown(&listener.listen)
            );
            let help =
                "use TLS for all sites of the listener or for none, by `tls` or by http:// and https:// in `listen`";
            check.conflict(listener.span, (&format!("{opposite} here"), other.span), message, help);
            // Further conflicts usually have the same cause.
            return;
        }
        seen.entry((scope, listener.secure)).or_insert(listener);
        if let SocketScope::Address(_, port) = scope {
            seen.entry((SocketScope::SomeAddress(port), listener.secure))
                .or_insert(listener);
        }
    }
}

/// Socket that a listener uses.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum SocketScope<'c> {
    /// A port on every address of the machine.
    EveryAddress(u16),
    /// A port on at least one address that a listener names.
    SomeAddress(u16),
    /// A port on this address.
    Address(IpAddr, u16),
    /// A Unix socket.
    Path(&'c Path),
}

impl SocketScope<'_> {
    fn of(listen: &Listen) -> SocketScope<'_> {
        match listen {
            Listen::Tcp { address: None, port } => SocketScope::EveryAddress(*port),
            Listen::Tcp {
                address: Some(address),
                port,
            } => SocketScope::Address(*address, *port),
            Listen::Unix(path) => SocketScope::Path(path),
        }
    }
}

/// Returns a host name for messages.
fn host(name: &HostPattern) -> String {
    match name {
        HostPattern::Exact(name) => name.clone(),
        HostPattern::Wildcard(name) => format!("*.{name}"),
    }
}

/// Returns a listener for messages.
fn shown(listen: &Listen) -> String {
    match listen {
        Listen::Tcp { address: None, port } => format!("port {port}"),
        Listen::Tcp {
            address: Some(IpAddr::V6(address)),
            port,
        } => format!("[{address}]:{port}"),
        Listen::Tcp {
            address: Some(address),
            port,
        } => format!("{address}:{port}"),
        Listen::Unix(path) => format!("unix:{}", path.display()),
    }
}
