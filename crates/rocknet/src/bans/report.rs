//! Bans and offenders for the control API and the metrics.

use std::sync::atomic::Ordering;

use rocknet_control::ban::{BanList, BanListFile, BanSummary, OffenderSummary};
use rocknet_limit::bans::FOREVER;

use super::offence::Offence;
use super::{Bans, address, lock, unix_s};

/// Maximum number of bans in a reply, which then has a few megabytes.
const MAX_LISTED: usize = 10_000;

/// Maximum number of offenders in a reply: more than an operator looks through.
const MAX_OFFENDERS: usize = 32;

/// Counters of bans for the metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BanCounters {
    /// Clients that are banned now, and networks that operators have banned.
    pub active: u64,
    /// Addresses and networks in list files.
    pub listed: u64,
    /// Bans since the start by kind of offence.
    pub by_offence: Vec<(&'static str, u64)>,
    /// Bans that offences would have led to without `dry_run`.
    pub dry_run: u64,
    /// Connections that were closed.
    pub connections: u64,
    /// Requests that were refused.
    pub requests: u64,
}

impl Bans {
    /// Returns the bans, the latest first, and the list files.
    pub fn list(&self) -> BanList {
        let now = unix_s();
        let end = |until: u64| (until != FOREVER).then_some(until);
        let mut bans: Vec<BanSummary> = Vec::new();
        for (client, ban) in self.clients.all() {
            if ban.is_active(now) {
                bans.push(BanSummary {
                    address: address::client_text(client),
                    reason: ban.reason.to_string(),
                    since: ban.since,
                    until: end(ban.until),
                    count: ban.count,
                });
            }
        }
        for added in lock(&self.added).iter().filter(|added| added.is_active(now)) {
            bans.push(BanSummary {
                address: address::text(added.network),
                reason: added.reason.to_string(),
                since: added.since,
                until: end(added.until),
                count: 1,
            });
        }
        bans.sort_by(|a, b| b.since.cmp(&a.since).then_with(|| a.address.cmp(&b.address)));
        let total = bans.len() as u64;
        bans.truncate(MAX_LISTED);
        let file = |list: &std::sync::Arc<super::list_files::List>| BanListFile {
            file: list.path.display().to_string(),
            entries: list.entries as u64,
            skipped_lines: list.bad_lines as u64,
            error: list.error.clone(),
        };
        let files = lock(&self.files).lists().iter().map(file).collect();
        BanList { total, bans, files }
    }

    /// Returns the clients with the most offences in the last minutes, the worst first.
    pub fn worst_clients(&self) -> Vec<OffenderSummary> {
        let now = unix_s();
        let worst = lock(&self.offenders).worst(MAX_OFFENDERS, now);
        let summary = |offender: rocknet_limit::offenders::Offender<{ Offence::ALL.len() }>| {
            let count = |offence: Offence| offender.counts[offence as usize];
            OffenderSummary {
                address: address::client_text(offender.client),
                logins: count(Offence::Login),
                not_found: count(Offence::NotFound),
                refused: count(Offence::Refused),
                handshakes: count(Offence::Handshake),
                // `true`: a ban of any reason counts.
                is_banned: self.clients.is_banned(offender.client, now, |_| true),
            }
        };
        worst.into_iter().map(summary).collect()
    }

    /// Returns the number of bans that apply now, without the entries of list files.
    pub fn active(&self) -> u64 {
        let now = unix_s();
        let added = lock(&self.added).iter().filter(|added| added.is_active(now)).count();
        (self.clients.active(now) + added) as u64
    }

    /// Returns the counters for the metrics.
    pub fn counters(&self) -> BanCounters {
        let counters = &self.counters;
        let of = |offence: Offence| (offence.name(), counters.bans[offence as usize].load(Ordering::Relaxed));
        BanCounters {
            active: self.active(),
            listed: lock(&self.files).lists().iter().map(|list| list.entries as u64).sum(),
            by_offence: Offence::ALL.map(of).to_vec(),
            dry_run: counters.dry_run.load(Ordering::Relaxed),
            connections: counters.connections.load(Ordering::Relaxed),
            requests: counters.requests.load(Ordering::Relaxed),
        }
    }
}
