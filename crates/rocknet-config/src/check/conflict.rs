//! All sites together: no two may answer to the same name, or to all names, at the same listener.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use crate::check::listen::SiteListener;
use crate::check::site::CheckedSite;
use crate::context::Check;
use crate::model::{HostPattern, Listen};
use crate::source::Span;

pub(super) fn check(check: &mut Check<'_>, sites: &[CheckedSite]) {
    check_names(check, sites);
    check_overlaps(check, sites);
    check_schemes(check, sites);
}

/// One name, or the part of those that answer to all, belongs to one site on each listener.
fn check_names(check: &mut Check<'_>, sites: &[CheckedSite]) {
    let mut taken: HashMap<(&Listen, Option<&HostPattern>), (&CheckedSite, Span)> = HashMap::new();
    // Told once for each pair of sites: the same two clash on each listener and name.
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
                        "sites \"{}\" and \"{}\" both answer to {} on {at}",
                        other.site.name,
                        site.site.name,
                        host(name)
                    ),
                    None => format!(
                        "sites \"{}\" and \"{}\" both answer to every name on {at}",
                        other.site.name, site.site.name
                    ),
                };
                let help = match name {
                    Some(_) => "give the name to one of them, or let them listen at different places",
                    None => "let one of them listen elsewhere, or give it a host name",
                };
                check.conflict(span, ("the other is here", there), message, help);
            }
        }
    }
}

/// A port on every address, and the same port on every IPv4 address, cannot both be opened.
fn check_overlaps(check: &mut Check<'_>, sites: &[CheckedSite]) {
    let mut whole: HashMap<u16, Span> = HashMap::new();
    for SiteListener { listen, span, .. } in sites.iter().flat_map(|site| &site.listen) {
        if let Listen::Tcp { address: None, port } = listen
            && *port != 0
        {
            whole.entry(*port).or_insert(*span);
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
        let all = match address {
            IpAddr::V4(v4) => v4.is_unspecified(),
            IpAddr::V6(v6) => v6.is_unspecified(),
        };
        let Some(there) = whole.get(port).filter(|_| all && !reported.contains(&listen)) else {
            continue;
        };
        reported.insert(listen);
        let message = format!("{} overlaps with port {port} of every address", shown(listen));
        let help = format!("write {port} in both places, or name the addresses in both");
        check.conflict(*span, ("which is here", *there), message, &help);
    }
}

/// What a socket speaks is known before anything is said on it, so all sites at one port have to agree.
fn check_schemes(check: &mut Check<'_>, sites: &[CheckedSite]) {
    // The first that speaks in either way: at an address, at any address of a port, and at the port as a whole. Port 0 is
    // another port for every address that asks for it.
    let mut seen: HashMap<(u16, PortScope, bool), &SiteListener> = HashMap::new();
    let known = sites.iter().filter(|site| site.tls_is_known);
    for listener in known.flat_map(|site| &site.listen) {
        let Listen::Tcp { address, port } = listener.listen else {
            continue;
        };
        let other = |scope| seen.get(&(port, scope, !listener.secure));
        let conflicting = match address {
            Some(address) => {
                other(PortScope::Address(address)).or_else(|| other(PortScope::AnyAddress).filter(|_| port != 0))
            }
            None => other(PortScope::AnyAddress).or_else(|| other(PortScope::SomeAddress).filter(|_| port != 0)),
        };
        if let Some(other) = conflicting {
            let (here, there) = match listener.secure {
                true => ("TLS", "in the clear here"),
                false => ("clear HTTP", "under TLS here"),
            };
            let message = format!(
                "{} cannot speak {here} for one site and not for another",
                shown(&listener.listen)
            );
            let help = "let them agree, by `tls` or by http:// and https:// in `listen`, or use another port";
            check.conflict(listener.span, (there, other.span), message, help);
            return;
        }
        let own = address.map_or([PortScope::AnyAddress, PortScope::AnyAddress], |address| {
            [PortScope::Address(address), PortScope::SomeAddress]
        });
        for scope in own {
            seen.entry((port, scope, listener.secure)).or_insert(listener);
        }
    }
}

/// How much of a port a listener takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum PortScope {
    AnyAddress,
    SomeAddress,
    Address(IpAddr),
}

fn host(name: &HostPattern) -> String {
    match name {
        HostPattern::Exact(name) => name.clone(),
        HostPattern::Wildcard(name) => format!("*.{name}"),
    }
}

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
