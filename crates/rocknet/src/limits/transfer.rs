//! Transfer of the tables of limits to the process that replaces this one in an upgrade. As after a reload, a limit
//! continues if it has the same settings at the same route.

use std::collections::HashMap;

use rocknet_config::model::{Amount, Excess};
use rocknet_limit::transfer::{Transfer, TransferWriter, TransferredBucket};
use rocknet_limit::{Rate, RateTable, bandwidth};

use super::{LimitId, LimitRegistry, LimitState};

/// Kind of the sections with the buckets of limits. The name of each section is that of [`LimitId::name`]. The other
/// kinds belong to `bans/transfer.rs` and `limit_transfer.rs`.
const LIMIT: u32 = 1;

impl LimitRegistry {
    /// Writes the tables of the limits in use. `now`: uptime in nanoseconds. Requests in progress are left out, because
    /// each process counts its own.
    pub fn write(&self, transfer: &mut TransferWriter, now: u64) {
        for state in self.all() {
            if let Some((table, _)) = state.buckets() {
                transfer.section(LIMIT, &state.id.name(), |write| {
                    table.for_each_used(now, |key, left| write(&TransferredBucket { key, left }.record()));
                });
            }
        }
    }

    /// Adopts the tables of a predecessor. Limits that are not in use here are left out. `now`: uptime in nanoseconds.
    /// Returns the number of buckets.
    pub fn adopt(&self, transfer: &Transfer<'_>, now: u64) -> usize {
        let states = self.all();
        let states: HashMap<Vec<u8>, _> = states.iter().map(|state| (state.id.name(), state)).collect();
        let mut adopted = 0;
        for section in transfer.sections(LIMIT) {
            let state = states.get(section.name);
            let Some((table, capacity)) = state.and_then(|state| state.buckets()) else {
                continue;
            };
            for bucket in transfer.buckets(&section, capacity) {
                table.adopt(bucket.key, bucket.left, now);
                adopted += 1;
            }
        }
        adopted
    }
}

impl LimitState {
    /// Returns the buckets of the keys, with the nanoseconds in which an empty one becomes full. `None` for a limit of
    /// requests in progress.
    fn buckets(&self) -> Option<(&RateTable, u64)> {
        match &self.id.amount {
            Amount::Rate(limit) => {
                let interval = limit.rate.interval().as_nanos() as u64;
                let capacity = Rate::new(interval, limit.burst, None).capacity();
                Some((&self.rates, capacity))
            }
            Amount::Bandwidth(_) => Some((self.bandwidth.buckets(), bandwidth::CAPACITY)),
            Amount::Connections(_) => None,
        }
    }
}

impl LimitId {
    /// Returns a name that limits with the same settings at the same route have in both processes.
    fn name(&self) -> Vec<u8> {
        let amount = match &self.amount {
            Amount::Rate(limit) => {
                let delay = match limit.excess {
                    Excess::Immediate => "-".to_owned(),
                    Excess::Delayed { after } => after.to_string(),
                };
                format!("rate {} {} {delay}", limit.rate, limit.burst)
            }
            Amount::Connections(max) => format!("connections {max}"),
            Amount::Bandwidth(limit) => format!("bandwidth {} {} {}", limit.rate, limit.after, limit.is_shared),
        };
        let parts = [&*self.site, &*self.route, &*amount]
            .into_iter()
            .chain(self.key.as_deref());
        let mut name = Vec::new();
        for part in parts {
            // The length separates a part from the next one.
            name.extend_from_slice(&(part.len() as u64).to_le_bytes());
            name.extend_from_slice(part.as_bytes());
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use rocknet_config::model::{BandwidthLimit, Limit, RateLimit, RateUnit, RequestRate};
    use rocknet_limit::{KeySeed, Taken};

    use super::*;

    const S: u64 = 1_000_000_000;

    fn registry() -> LimitRegistry {
        LimitRegistry::new(KeySeed::new(&[7; KeySeed::SIZE]))
    }

    fn limit(amount: Amount, key: Option<&str>) -> Limit {
        Limit {
            amount,
            key: key.map(str::to_owned),
            exempt: Vec::new(),
            dry_run: false,
        }
    }

    fn rate(requests: u32, per: RateUnit, burst: u32, excess: Excess) -> Amount {
        let rate = RequestRate { requests, per };
        Amount::Rate(RateLimit { rate, burst, excess })
    }

    #[test]
    fn limits_with_the_same_settings_continue() {
        let second = RateUnit::Second;
        let original = limit(rate(1, second, 3, Excess::Immediate), Some("{host}"));
        let (old, new) = (registry(), registry());
        let state = |registry: &LimitRegistry, site: &str, route: &str, limit: &Limit| {
            registry.state(&site.into(), &route.into(), limit)
        };
        let used_up = state(&old, "a", "/*", &original);
        let take = |state: &LimitState, now| state.rates.take(&Rate::new(S, 3, None), 7, now);
        while take(&used_up, 100 * S) != (Taken::Refused { retry_after: S }) {}
        let connections = state(&old, "a", "/*", &limit(Amount::Connections(2), None));

        let others = [
            ("b", "/*", original.clone()),
            ("a", "/b", original.clone()),
            ("a", "/*", limit(original.amount, None)),
            ("a", "/*", limit(original.amount, Some("{path}"))),
            ("a", "/*", limit(rate(2, second, 3, Excess::Immediate), Some("{host}"))),
            (
                "a",
                "/*",
                limit(rate(60, RateUnit::Minute, 3, Excess::Immediate), Some("{host}")),
            ),
            ("a", "/*", limit(rate(1, second, 4, Excess::Immediate), Some("{host}"))),
            (
                "a",
                "/*",
                limit(rate(1, second, 3, Excess::Delayed { after: 1 }), Some("{host}")),
            ),
        ];
        let others: Vec<_> = others
            .iter()
            .map(|(site, route, limit)| state(&new, site, route, limit))
            .collect();
        let same = state(&new, "a", "/*", &original);

        let mut writer = TransferWriter::new(&old.seed, 50 * S);
        old.write(&mut writer, 100 * S);
        drop(connections);
        let bytes = writer.finish();
        let transfer = Transfer::read(&bytes, &new.seed, 50 * S + S / 2).unwrap();
        assert_eq!(new.adopt(&transfer, 9 * S), 1);
        // Half a second has passed on the way.
        assert_eq!(take(&same, 9 * S), Taken::Refused { retry_after: S / 2 });
        for other in &others {
            assert_eq!(other.rates.used(9 * S), 0, "{:?}", other.id);
        }
    }

    #[test]
    fn the_bandwidth_of_a_key_continues() {
        let shared = BandwidthLimit {
            rate: 1_000,
            after: 0,
            is_shared: true,
        };
        let limit = limit(Amount::Bandwidth(shared), Some("all"));
        let (old, new) = (registry(), registry());
        let states = [&old, &new].map(|registry| registry.state(&"a".into(), &"/*".into(), &limit));
        let [mut of_old, mut of_new] = states.each_ref().map(|state| state.bandwidth.join(7, 1_000, 5 * S));
        assert_eq!(of_old.take(u64::MAX, S / 4, 5 * S), 500);
        let mut writer = TransferWriter::new(&old.seed, 0);
        old.write(&mut writer, 5 * S);
        let bytes = writer.finish();
        assert_eq!(new.adopt(&Transfer::read(&bytes, &new.seed, 0).unwrap(), 5 * S), 1);
        assert_eq!(of_new.take(u64::MAX, S / 4, 5 * S), 0);
    }
}
