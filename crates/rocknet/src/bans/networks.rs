//! Banned networks: those of files, and those that operators have added.

use std::net::IpAddr;
use std::sync::Arc;

use rocknet_config::client_ranges::ClientRanges;
use rocknet_config::model::{ClientRange, Network};
use rocknet_limit::bans::FOREVER;

use super::list_files::List;
use super::offence::Reason;

/// Network that an operator has banned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedNetwork {
    pub network: Network,
    /// Beginning and end of the ban in seconds of the Unix clock.
    pub since: u64,
    pub until: u64,
    pub reason: Reason,
}

impl AddedNetwork {
    /// Returns true while the ban lasts.
    pub fn is_active(&self, now: u64) -> bool {
        now < self.until
    }
}

/// All banned networks. A lookup takes about 20 steps for each file.
pub struct Networks {
    lists: Vec<Arc<List>>,
    added: ClientRanges,
    has_added: bool,
    /// Time at which the first ban of `added` ends, in seconds of the Unix clock; [`FOREVER`] if none ends.
    pub next_end: u64,
}

impl Default for Networks {
    fn default() -> Networks {
        Networks::new(&[], &[], 0)
    }
}

impl Networks {
    /// Prepares networks for lookups. Bans that have ended are left out.
    pub fn new(lists: &[Arc<List>], added: &[AddedNetwork], now: u64) -> Networks {
        let active: Vec<_> = added.iter().filter(|added| added.is_active(now)).collect();
        let ranges: Vec<_> = active.iter().map(|added| ClientRange::Network(added.network)).collect();
        Networks {
            lists: lists.iter().filter(|list| list.entries > 0).cloned().collect(),
            added: ClientRanges::new(&ranges),
            has_added: !active.is_empty(),
            next_end: active.iter().map(|added| added.until).min().unwrap_or(FOREVER),
        }
    }

    /// Returns true if there is no network.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && !self.has_added
    }

    /// Returns true if a network contains the address.
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = Some(address);
        self.added.contain(address) || self.lists.iter().any(|list| list.ranges.contain(address))
    }

    /// Returns a description of the entry that bans an address.
    pub fn entry_of(&self, address: IpAddr) -> Option<String> {
        if self.added.contain(Some(address)) {
            return Some("a network that contains it: lift the ban of that network".to_owned());
        }
        let list = self.lists.iter().find(|list| list.ranges.contain(Some(address)))?;
        Some(format!("the file {}: remove it there", list.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::parse;
    use super::*;

    #[test]
    fn networks_end() {
        let network = parse("192.0.2.0/24").unwrap();
        let reason = Reason::Operator("".into());
        let added = [AddedNetwork {
            network,
            since: 0,
            until: 10,
            reason,
        }];
        let networks = Networks::new(&[], &added, 9);
        let inside = "192.0.2.255".parse().unwrap();
        assert!(networks.contain(inside) && !networks.is_empty() && networks.next_end == 10);
        let networks = Networks::new(&[], &added, 10);
        assert!(!networks.contain(inside) && networks.is_empty() && networks.next_end == FOREVER);
    }
}
