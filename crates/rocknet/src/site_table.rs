//! Sites of one listener, found by host name. If the listener accepts connections on every address of the machine,
//! sites are also found by the local IP address of the connection. The catch-all site serves every name that no other
//! site has.

use std::collections::BTreeSet;
use std::net::IpAddr;

use rocknet_proto::semantics::authority::{Authority, HOST_BUFFER};

use crate::routing::HostTable;
use crate::snapshot::ListenerSites;

/// Table of the sites that a listener serves. A site is represented by its number in the configuration.
pub struct SiteTable {
    /// Sites by host name, whatever the local IP address of the connection is.
    hosts: HostTable<u32>,
    /// Sites for connections to a single local IP address, by that address.
    by_ip: Vec<(IpAddr, HostTable<u32>)>,
    /// First site of the listening address, in the order of names; `None` if no site listens on it.
    first: Option<u32>,
    /// Sites that are served by HTTP/3.
    http3: BTreeSet<u32>,
}

impl SiteTable {
    /// Creates the table of a listener. `sites`: `None` if no site listens on the address.
    pub fn new(sites: Option<&ListenerSites>) -> SiteTable {
        SiteTable {
            hosts: sites.map_or_else(HostTable::new, |sites| sites.any.clone()),
            by_ip: sites.map_or_else(Vec::new, |sites| sites.by_ip.clone().into_iter().collect()),
            first: sites.and_then(ListenerSites::first),
            http3: sites.map_or_else(BTreeSet::new, |sites| sites.http3_sites.clone()),
        }
    }

    /// Returns true if a site is served by HTTP/3 at this listening address.
    pub fn serves_http3(&self, site: u32) -> bool {
        self.http3.contains(&site)
    }

    /// Returns true if the site of a request depends on the local IP address of the connection.
    pub fn has_address_sites(&self) -> bool {
        !self.by_ip.is_empty()
    }

    /// Returns the site of a TLS server name (SNI), and true if the name is one of the site's own. Without such a site,
    /// returns the catch-all site and false; `None` if there is no catch-all site either. `local`: local IP address of
    /// the connection, if sites are selected by it.
    pub fn site_of_server_name(&self, local: Option<IpAddr>, name: Option<&str>) -> Option<(u32, bool)> {
        let own = local.and_then(|local| self.by_ip.iter().find(|(ip, _)| *ip == local));
        let tables = own.map(|(_, hosts)| hosts).into_iter().chain([&self.hosts]);
        let named = name.and_then(|name| tables.clone().find_map(|hosts| hosts.lookup_named(name)));
        let default = || tables.clone().find_map(HostTable::default_value);
        named
            .map(|site| (site, true))
            .or_else(|| default().map(|site| (site, false)))
    }

    /// Returns the site of an authority (`Host` or `:authority`). Without a site with this host, returns the catch-all
    /// site; `None` if there is no catch-all site either. `local`: local IP address of the connection, if sites are
    /// selected by it.
    #[inline]
    pub fn site(&self, local: Option<IpAddr>, authority: &[u8]) -> Option<u32> {
        if let Some(local) = local
            && let Some((_, hosts)) = self.by_ip.iter().find(|(ip, _)| *ip == local)
            && let Some(site) = find(hosts, authority)
        {
            return Some(site);
        }
        find(&self.hosts, authority)
    }

    /// Returns the default site, for requests that have no host or cannot be parsed: the catch-all site, or the first
    /// site if there is no catch-all site. `local`: local IP address of the connection, if sites are selected by it.
    pub fn default_site(&self, local: Option<IpAddr>) -> Option<u32> {
        let own = self.by_ip.iter().find(|(ip, _)| Some(*ip) == local);
        own.and_then(|(_, hosts)| hosts.default_value())
            .or_else(|| self.hosts.default_value())
            .or(self.first)
    }
}

/// Returns the site of an authority in one table: the site with this host, or the catch-all site; `None` if the table
/// has neither.
#[inline]
fn find(hosts: &HostTable<u32>, authority: &[u8]) -> Option<u32> {
    // Without host names, the authority need not be parsed.
    if hosts.is_empty() {
        return hosts.default_value();
    }
    let mut lower = [0; HOST_BUFFER];
    match Authority::parse(authority) {
        Some(authority) => hosts.lookup(authority.lower_host(&mut lower)),
        None => hosts.default_value(),
    }
}
