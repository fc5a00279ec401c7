//! Status, configuration, addresses and components of a running server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rocknet_cache::purge::Purge;
use rocknet_control::response_purge::ResponsePurge;
use rocknet_control::{SiteSummary, Status};
use rocknet_io::socket::Address;

use super::Server;
use crate::backend::BackendChoice;
use crate::certificates::CertificateManager;
use crate::gateway::php;
use crate::log::Logger;
use crate::metrics::Metrics;
use crate::registries::Registries;
use crate::report;
use crate::snapshot::{Snapshot, quic_addresses};

/// Maximum time that a purge waits until it is recorded on disk.
const PURGE_FLUSH: Duration = Duration::from_secs(1);

impl Server {
    /// Returns the configuration in use.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.state().snapshot)
    }

    /// Returns the current state and counters of the server.
    pub fn status(&self) -> Status {
        // After an upgrade, this process passes QUIC datagrams to older processes through channels (relays). Without
        // this call, a channel to a process that has ended could stay open until the next reload.
        self.close_ended_relays();
        let bound = self.listeners();
        let state = self.state();
        let served = quic_addresses(&state.snapshot.config);
        let served = |address: &Address| served.contains(address);
        let with_http3 = || {
            let all = state.listeners.iter();
            all.filter(|(configured, listener)| listener.has_quic() && served(configured))
        };
        let http3: BTreeSet<Address> = with_http3().map(|(configured, _)| configured.clone()).collect();
        let http3_ports: BTreeSet<u16> = with_http3()
            .filter_map(|(_, listener)| listener.bound().port())
            .collect();
        let http3_ports = http3_ports.into_iter().collect();
        Status {
            reloads: state.reloads,
            snapshots: self.shared.registries.snapshots() as u64,
            last_reload_error: state.last_reload_error.clone(),
            bans: self.shared.registries.bans.active(),
            log_drops: self.shared.logger.drops(),
            limited: self.shared.registries.limits.requests(),
            auth_errors: self.shared.registries.auth_counters.errors(),
            response_cache: report::response_cache(&self.shared.registries.responses, &self.metrics),
            http3_ports,
            ..report::status(
                &state.snapshot,
                &bound,
                &http3,
                (&self.metrics, &self.shared.registries.routes),
                self.shared.cache.status(),
            )
        }
    }

    /// Returns the counters of all workers.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the number of configurations that were refused since the start of the server.
    pub fn failed_reloads(&self) -> u64 {
        self.state().failed_reloads
    }

    /// Returns the manager of the PHP processes that the server runs itself.
    pub fn php(&self) -> &php::PhpManager {
        &self.php
    }

    /// Returns the sites with their URLs and handlers.
    pub fn sites(&self) -> Vec<SiteSummary> {
        report::sites(&self.snapshot(), &self.listeners())
    }

    /// Removes all files from the file cache, and waits until they are removed. Returns false if the cache was too busy
    /// to remove them in time; they are then removed later.
    pub fn purge_file_cache(&self) -> bool {
        self.shared.cache.purge()
    }

    /// Drops stored responses, and returns the number of resources whose responses were dropped.
    ///
    /// # Errors
    ///
    /// The error names a text that is not a URL, or two selections that exclude each other.
    pub fn purge_responses(&self, purge: &ResponsePurge) -> Result<usize, String> {
        let ResponsePurge { url, prefix, tag, site } = purge;
        let of_url = |url: &String, is_prefix| {
            let invalid = || format!("\"{url}\" is not a URL such as https://example.com/page");
            Purge::url(url, is_prefix).ok_or_else(invalid)
        };
        let mut selected = match (url, prefix, tag) {
            (None, None, None) => Purge::everything(),
            (Some(url), None, None) => of_url(url, false)?,
            (None, Some(prefix), None) => of_url(prefix, true)?,
            (None, None, Some(tag)) => Purge::tag(tag),
            _ => return Err("only one of url, prefix and tag can be given".to_owned()),
        };
        selected.site.clone_from(site);
        Ok(self.shared.registries.responses.purge(&[selected]))
    }

    /// Waits until all purges so far are recorded on disk, so that they also apply if the process is killed. Returns
    /// false if they are not recorded in time.
    pub fn record_purges(&self) -> bool {
        let disk = self.shared.registries.responses.disk();
        let is_recorded = disk.is_none_or(|disk| disk.flush(PURGE_FLUSH));
        if !is_recorded {
            tracing::warn!("response cache on disk: a purge is not recorded there yet");
        }
        is_recorded
    }

    /// Returns the I/O back end, and the reason why it was chosen.
    pub fn backend(&self) -> &BackendChoice {
        &self.backend
    }

    /// Returns the certificate manager.
    pub fn certificates(&self) -> &Arc<CertificateManager> {
        &self.shared.certificates
    }

    /// Returns the registries of this server.
    pub fn registries(&self) -> &Arc<Registries> {
        &self.shared.registries
    }

    /// Returns the logger of this server.
    pub fn logger(&self) -> &Logger {
        &self.shared.logger
    }

    /// Returns each configured address with the bound address and its number of workers.
    pub fn listeners(&self) -> Vec<(Address, Address, usize)> {
        let state = self.state();
        state
            .listeners
            .iter()
            .map(|(configured, listener)| (configured.clone(), listener.bound().clone(), listener.workers()))
            .collect()
    }
}
