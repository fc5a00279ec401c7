//! Certificates that the sites of a configuration request, and the names that they must cover.

use rocknet_config::model::{Config, HostPattern, Listen, Mode, Site};
use rocknet_io::machine;

use super::local::is_private;
use super::{Authority, CertificateRequest};

/// Returns the certificate requests of all sites. `addresses`: private addresses of this machine.
pub(super) fn requests(config: &Config, addresses: &[String]) -> Vec<CertificateRequest> {
    let mut all = Vec::new();
    for site in &config.sites {
        let Some(tls) = &site.tls else { continue };
        let (mut local, mut public) = (Vec::new(), Vec::new());
        for name in names(site, config.server.mode, addresses) {
            match Authority::of(&tls.source, config.server.mode, &name) {
                Some(Authority::Local) => local.push(name),
                Some(Authority::Acme) => public.push(name),
                None => {}
            }
        }
        for (authority, names) in [(Authority::Local, local), (Authority::Acme, public)] {
            if !names.is_empty() {
                all.push(CertificateRequest {
                    site: site.name.clone(),
                    authority,
                    names,
                });
            }
        }
    }
    all
}

/// Returns true if a site gets a certificate of the local CA.
pub fn needs_local_ca(config: &Config) -> bool {
    requests(config, &[])
        .iter()
        .any(|one| one.authority == Authority::Local)
}

/// Returns the names that a site's certificate must cover: the names of the site or, if it has none, the loopback names
/// and the site's TLS listening addresses. In `dev` mode, a site without names that listens at all addresses also gets
/// `addresses`, the private addresses of this machine. Phones in the network can then open it.
pub(super) fn names(site: &Site, mode: Mode, addresses: &[String]) -> Vec<String> {
    let text = |name: &HostPattern| match name {
        HostPattern::Exact(name) => name.clone(),
        HostPattern::Wildcard(name) => format!("*.{name}"),
    };
    if !site.names.is_empty() {
        return site.names.iter().map(text).collect();
    }
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    for listen in &site.secure {
        if let Listen::Tcp {
            address: Some(address), ..
        } = listen
            && !address.is_unspecified()
            && !names.contains(&address.to_string())
        {
            names.push(address.to_string());
        }
    }
    if has_addresses(site, mode) {
        names.extend_from_slice(addresses);
    }
    names
}

/// Returns true if the certificate of a site has the addresses of this machine.
pub(super) fn has_addresses(site: &Site, mode: Mode) -> bool {
    let is_everywhere = |listen: &Listen| match listen {
        Listen::Tcp { address, .. } => address.is_none_or(|address| address.is_unspecified()),
        Listen::Unix(_) => false,
    };
    mode == Mode::Dev && site.names.is_empty() && site.secure.iter().any(is_everywhere)
}

/// Returns the private addresses of this machine, at most [`MAX_ADDRESSES`]. Addresses at which machines of the network
/// reach this one come first. Public addresses are left out. The local CA that `rocknet trust` installs may sign only
/// private names and addresses. A second local CA may sign any name, but it is installed only on explicit request.
pub(super) fn private_addresses() -> Vec<String> {
    let mut addresses: Vec<String> = Vec::new();
    for address in machine::lan_addresses().into_iter().chain(machine::addresses()) {
        let text = address.to_string();
        if is_private(&text) && !addresses.contains(&text) && addresses.len() < MAX_ADDRESSES {
            addresses.push(text);
        }
    }
    addresses
}

/// Maximum number of addresses of the machine in a certificate. The others mostly belong to bridges and containers.
const MAX_ADDRESSES: usize = 8;
