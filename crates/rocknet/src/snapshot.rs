//! Snapshot: a configuration that is ready to serve. It is immutable, shared by all workers, and replaced as a whole.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rocknet_config::model::{Config, Listen, Pattern};
use rocknet_io::socket::Address;
use rocknet_telemetry::Tracer;

use crate::certificates::CertificateManager;
use crate::files::tree::Tree;
use crate::handler::Handler;
use crate::log::Logger;
use crate::registries::Registries;
use crate::route::ServerSettings;
use crate::routing::HostTable;
use crate::site::{Site, SiteContext};
use crate::spool;

/// A configuration with its sites, endpoints and listeners.
pub struct Snapshot {
    pub config: Config,
    /// Sites in the order of `config.sites`, which is that of their names.
    pub sites: Vec<Site>,
    /// Sites of each listening address, by the address to bind.
    pub listeners: BTreeMap<Address, ListenerSites>,
    /// Number that grows with every snapshot of a server.
    pub generation: u64,
    /// Settings of the server that handlers use.
    pub server: Arc<ServerSettings>,
    /// True if a placeholder needs the identifiers of requests.
    pub uses_request_id: bool,
    /// Tracer of requests; `None` if their spans are not recorded.
    pub tracer: Option<Arc<Tracer>>,
    /// Counts the snapshot until it is dropped.
    _token: Arc<()>,
}

/// A handler of the embedding program, with its site and route.
#[derive(Clone)]
pub struct Mount {
    /// Name of the site.
    pub site: String,
    pub pattern: Pattern,
    pub handler: Arc<dyn Handler>,
}

impl Snapshot {
    /// Prepares a configuration, and opens the access logs of its sites. Settings that cannot be used are found here,
    /// before any part of the configuration takes effect. `quic`: the addresses that serve HTTP/3. `remembered`:
    /// settings that clients of HTTP/3 remember for early data.
    ///
    /// # Errors
    ///
    /// The message names the site and the setting that cannot be used.
    pub fn new(
        config: Config,
        mounts: &[Mount],
        logger: &Logger,
        certificates: &CertificateManager,
        registries: &Registries,
        quic: &BTreeSet<Address>,
        remembered: &[u8],
    ) -> Result<Snapshot, String> {
        let server = Arc::new(ServerSettings {
            server: config.server.clone(),
            spool: spool::Bounds::new(&config.server.spool),
            send_timeout: config.limits.send_stall,
        });
        // If one site listens on all addresses of a port, one socket serves the port: the kernel would refuse a second
        // one.
        let wildcards = wildcard_ports(&config);
        let context = SiteContext {
            config: &config,
            server: &server,
            registries,
            serves_quic: &|listen| quic.contains(&bind_address(listen, &wildcards).0),
        };
        let mut sites = Vec::with_capacity(config.sites.len());
        let mut listeners: BTreeMap<Address, ListenerSites> = BTreeMap::new();
        for (number, site) in config.sites.iter().enumerate() {
            let number = u32::try_from(number).map_err(|_| "too many sites".to_owned())?;
            let access = logger
                .sink(&site.access.target, &site.access.format, &site.name)
                .map_err(|error| format!("site {}: cannot open its access log: {error}", site.name))?;
            let mut built = Site::new(
                site,
                &context,
                access,
                certificates.secure_site(site, config.server.mode, remembered),
            )?;
            for mount in mounts.iter().filter(|mount| mount.site == site.name) {
                built.mount(site, &mount.pattern, &mount.handler, &context)?;
            }
            for listen in &site.listen {
                let (bound, ip) = bind_address(listen, &wildcards);
                let listener = listeners.entry(bound).or_default();
                listener.sites.insert(number);
                // The configuration check ensures that either all sites of a socket use TLS, or none of them.
                listener.secure |= site.secure.contains(listen);
                listener.h2c |= site.h2c.contains(listen);
                if site.serves_http3(listen) {
                    listener.http3_sites.insert(number);
                }
                let table = match ip {
                    Some(ip) => listener.by_ip.entry(ip).or_default(),
                    None => &mut listener.any,
                };
                for name in &site.names {
                    table
                        .insert(name, number)
                        .map_err(|error| format!("site {}: {error}", site.name))?;
                }
                if site.names.is_empty() && table.set_default(number).is_some() {
                    return Err(format!(
                        "site {}: another site already serves every name at one of its addresses",
                        site.name
                    ));
                }
            }
            sites.push(built);
        }
        // The only site of a listener also serves all names that it does not list, because a request cannot be for
        // another site.
        for listener in listeners.values_mut() {
            if listener.sites.len() == 1 && listener.any.default_value().is_none() && listener.by_ip.is_empty() {
                listener.sites.first().map(|only| listener.any.set_default(*only));
            }
        }
        let generation = registries.next_generation();
        let tracer = registries.traces.tracer(&config.tracing)?;
        Ok(Snapshot {
            server,
            uses_request_id: config.has_placeholder("request.id"),
            config,
            sites,
            listeners,
            generation,
            tracer,
            _token: registries.snapshot_token(),
        })
    }

    /// Returns the IDs of all directory trees, including those of error pages.
    pub fn tree_ids(&self) -> HashSet<u32> {
        self.trees().map(|tree| tree.id).collect()
    }

    fn trees(&self) -> impl Iterator<Item = &Arc<Tree>> {
        let endpoints = self.sites.iter().flat_map(Site::endpoints);
        endpoints.flat_map(|endpoint| endpoint.trees())
    }

    /// Returns the number of folders that the sites would keep open without a limit.
    pub fn folders(&self) -> usize {
        self.trees().count()
    }

    /// Returns the reason why large request bodies cannot be stored; `None` if they can. Checked only if a site needs
    /// to store them, or if the configuration names a folder for them. Blocks on the disk.
    pub fn spool_trouble(&self) -> Option<String> {
        let is_needed = self
            .sites
            .iter()
            .flat_map(Site::endpoints)
            .any(|endpoint| endpoint.buffers_request_body());
        let is_configured = self.config.server.spool.folder.is_some();
        (is_needed || is_configured)
            .then(|| self.server.spool.check_folder())
            .flatten()
    }

    /// Returns the sites whose certificate files cannot be used now, with the error. A site that had a certificate
    /// before continues to use it.
    pub fn certificate_errors(&self) -> impl Iterator<Item = (&str, String)> {
        self.sites
            .iter()
            .filter_map(|site| Some((site.name.as_str(), site.secure.as_ref()?.error()?)))
    }

    /// Returns the folders that cannot be opened now, with site and error. With more than `max_sites` sites, no folder
    /// is checked.
    pub fn missing_folders(&self, max_sites: usize) -> Vec<(&str, &Path, io::Error)> {
        if self.sites.len() > max_sites {
            return Vec::new();
        }
        let trees = self.sites.iter().flat_map(|site| {
            // The endpoints without TLS serve the same folders.
            let endpoints = site.routes(true).endpoints();
            endpoints.filter_map(|endpoint| Some((site.name.as_str(), endpoint.tree.as_ref()?)))
        });
        trees
            .filter_map(|(name, tree)| tree.root().err().map(|error| (name, tree.folder(), error)))
            .collect()
    }
}

/// Returns the addresses to bind for a configuration.
pub fn addresses(config: &Config) -> Vec<Address> {
    let wildcards = wildcard_ports(config);
    let all: BTreeSet<Address> = config
        .sites
        .iter()
        .flat_map(|site| &site.listen)
        .map(|listen| bind_address(listen, &wildcards).0)
        .collect();
    all.into_iter().collect()
}

/// Returns the addresses whose UDP ports are also bound, for HTTP/3: the addresses with TLS at which a site enables
/// HTTP/3.
pub fn quic_addresses(config: &Config) -> BTreeSet<Address> {
    let wildcards = wildcard_ports(config);
    config
        .sites
        .iter()
        .flat_map(|site| site.secure.iter().filter(|listen| site.http3.is_enabled_at(listen)))
        .filter(|listen| matches!(listen, Listen::Tcp { .. }))
        .map(|listen| bind_address(listen, &wildcards).0)
        .collect()
}

/// Returns the ports at which a site listens on all addresses.
fn wildcard_ports(config: &Config) -> HashSet<u16> {
    config
        .sites
        .iter()
        .flat_map(|site| &site.listen)
        .filter_map(wildcard_port)
        .collect()
}

/// The sites of one listening socket, by their indexes in [`Snapshot::sites`].
#[derive(Default)]
pub struct ListenerSites {
    /// Sites by host name, for every address of the socket.
    pub any: HostTable<u32>,
    /// Sites for connections to a single local IP address, if the socket is bound to all addresses.
    pub by_ip: BTreeMap<IpAddr, HostTable<u32>>,
    /// True if connections use TLS.
    pub secure: bool,
    /// True if clients may use HTTP/2 without TLS, with prior knowledge.
    pub h2c: bool,
    /// Indexes of the sites that are served by HTTP/3 at the socket's UDP port.
    pub http3_sites: BTreeSet<u32>,
    /// Indexes of all sites of the socket.
    pub sites: BTreeSet<u32>,
}

impl ListenerSites {
    /// Returns the index of the first site, in the order of names.
    pub fn first(&self) -> Option<u32> {
        self.sites.first().copied()
    }
}

/// Returns the port of `listen` if it is for all addresses; `None` for port 0.
fn wildcard_port(listen: &Listen) -> Option<u16> {
    match listen {
        // The kernel chooses a separate port for each socket that is bound to port 0.
        Listen::Tcp { address: None, port } if *port != 0 => Some(*port),
        _ => None,
    }
}

/// Returns the address to bind for `listen`. Also returns the local IP address by which connections are assigned to its
/// site, if the bound socket is for all addresses and `listen` for one of them.
fn bind_address(listen: &Listen, wildcards: &HashSet<u16>) -> (Address, Option<IpAddr>) {
    match listen {
        Listen::Tcp {
            address: Some(ip),
            port,
        } if wildcards.contains(port) => (Address::Tcp { ip: None, port: *port }, Some(*ip)),
        Listen::Tcp { address, port } => (
            Address::Tcp {
                ip: *address,
                port: *port,
            },
            None,
        ),
        Listen::Unix(path) => (Address::Unix(path.clone()), None),
    }
}
