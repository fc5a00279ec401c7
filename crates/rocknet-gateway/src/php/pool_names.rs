//! Names of pools for operators, and the sites of each pool.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rocknet_config::Config;
use rocknet_config::model::{Php, PhpSettings, Settings};

use super::pool::Pool;
use super::sockets::PoolDescription;

/// Returns the name and the sites of each pool, by socket. `config`: the configuration with the sockets of its pools.
///
/// A pool without settings of its own is named by version and account, such as `8.2@alice`. Other names also have the
/// first site that uses the pool: `8.2/example.com`. If a name is taken already, a number follows: `8.2/example.com#2`.
pub fn describe<'p>(
    config: &Config,
    pools: impl Iterator<Item = (PathBuf, &'p Pool)>,
) -> BTreeMap<PathBuf, PoolDescription> {
    let mut roots: BTreeMap<PathBuf, Vec<(PathBuf, String)>> = BTreeMap::new();
    for site in &config.sites {
        let routes = site.routes.iter().map(|route| &route.settings);
        for settings in std::iter::once(&site.settings).chain(routes) {
            let Settings {
                php: Some(Php::Managed { socket, .. }),
                root: Some(root),
                ..
            } = settings
            else {
                continue;
            };
            let of_pool = roots.entry(socket.clone()).or_default();
            // The roots of a site are adjacent. Comparing with all roots would take long with thousands of sites.
            let mut of_site = of_pool.iter().rev().take_while(|(_, of)| *of == site.name);
            if !of_site.any(|(known, _)| known == root) {
                of_pool.push((root.clone(), site.name.clone()));
            }
        }
    }
    let mut all: BTreeMap<PathBuf, PoolDescription> = BTreeMap::new();
    for (socket, pool) in pools {
        let roots = roots.remove(&socket).unwrap_or_default();
        let name = match roots.first() {
            Some((_, site)) if pool.settings != PhpSettings::default() => format!("{}/{site}", pool.base_name()),
            _ => pool.base_name(),
        };
        let is_taken = |name: &str| all.values().any(|other| other.name == name);
        let numbered = (2..).map(|number: u32| format!("{name}#{number}"));
        let free = std::iter::once(name.clone())
            .chain(numbered)
            .find(|name| !is_taken(name));
        let name = free.unwrap_or(name);
        all.insert(socket, PoolDescription { name, roots });
    }
    all
}
