//! Bandwidth that responses share: `bandwidth` of a limit with a `key`, as in
//! `limit = { bandwidth = "2MiB/s", key = "{client.ip}" }`.

use std::sync::Arc;

use rocknet_config::client_ranges::ClientRanges;
use rocknet_config::model::{BandwidthLimit, Limit};
use rocknet_config::template::Values;
use rocknet_handler::shared_bandwidth::{BandwidthPart, SharedBandwidth};
use rocknet_limit::{BandwidthTable, KeySeed};

use super::key::LimitKey;
use super::{LimitRegistry, LimitState};
use crate::exchange::Client;

/// Limit of the bandwidth of all responses with the same key.
struct KeyBandwidth {
    /// Keeps the table, so that a reload finds it.
    _state: Arc<LimitState>,
    table: Arc<BandwidthTable>,
    /// Bytes per second.
    rate: u64,
    key: LimitKey,
    seed: KeySeed,
    exempt: ClientRanges,
}

/// Part of a response in the bandwidth of its key.
struct Part(rocknet_limit::BandwidthPart);

impl LimitRegistry {
    /// Returns a limit of the bandwidth that responses share. `site` and `route`: as for [`LimitRegistry::state`].
    ///
    /// # Errors
    ///
    /// Fails if the key of the limit has an unknown placeholder.
    pub fn shared_bandwidth(
        &self,
        site: &Arc<str>,
        route: &Arc<str>,
        (limit, bandwidth): (&Limit, BandwidthLimit),
    ) -> Result<Arc<dyn SharedBandwidth>, String> {
        let state = self.state(site, route, limit);
        Ok(Arc::new(KeyBandwidth {
            table: Arc::clone(&state.bandwidth),
            _state: state,
            rate: bandwidth.rate,
            key: LimitKey::new(limit)?,
            seed: self.seed().clone(),
            exempt: ClientRanges::new(&limit.exempt),
        }))
    }
}

impl SharedBandwidth for KeyBandwidth {
    fn join(&self, client: Client, values: &dyn Values, now_ns: u64) -> Option<Box<dyn BandwidthPart>> {
        if self.exempt.contain(client.address()) {
            return None;
        }
        let key = self.key.hash(&self.seed, client, values);
        Some(Box::new(Part(self.table.join(key, self.rate, now_ns))))
    }
}

impl BandwidthPart for Part {
    fn take(&mut self, max: u64, interval_ns: u64, now_ns: u64) -> u64 {
        self.0.take(max, interval_ns, now_ns)
    }

    fn give_back(&mut self, bytes: u64) {
        self.0.give_back(bytes);
    }
}
