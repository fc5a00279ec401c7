//! Removals and purges of responses on disk.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::super::entry::Entry;
use super::super::log::{CloseReason, Log, Phase};
use super::super::position::Position;
use super::super::record::{self, Header, Kind};
use super::Shared;
use crate::purge::{Purge, Selection};

impl Shared {
    /// Drops all responses for a key, also after a restart.
    pub fn remove(&self, key: &[u8]) {
        let log = self.log();
        self.remove_locked(log, key);
    }

    /// Does the work of [`Shared::remove`] with the locked log.
    pub fn remove_locked(&self, mut log: MutexGuard<'_, Log>, key: &[u8]) {
        match log.phase {
            Phase::Opening => log.early.remove(self.hash_of(key), key),
            Phase::Open => {
                // The hash is known while the log is open.
                if self
                    .hash_of(key)
                    .is_some_and(|hash| self.append_removal(&mut log, hash))
                {
                    self.after_change(log);
                }
            }
            // The change cannot be recorded any more.
            Phase::Closed => log.is_late = true,
        }
    }

    /// Drops all responses for a hash. Returns true if there were some, so that a removal was appended.
    pub fn append_removal(&self, log: &mut Log, hash: u64) -> bool {
        let is_removed = self.index.remove(hash) > 0;
        if let Some(header) = Header::new(Kind::Removal, hash, 0, 0, 0).filter(|_| is_removed) {
            log.append(header, Vec::new(), Bytes::new());
        }
        is_removed
    }

    /// Notes the URL of a response that was appended. `url`: `None` unless a template has made the key of the response.
    pub fn note_url(&self, entry: &Entry, url: Option<&[u8]>) {
        if let Some(hash) = url.and_then(|url| self.hash_of(url)) {
            self.index.sites.read().of(entry).urls.note_response(hash);
        }
    }

    /// Drops the responses to a URL of a site whose keys are made by a template, also after a restart.
    pub fn change_url(&self, site: &[u8], url: &[u8]) {
        let mut log = self.log();
        match log.phase {
            Phase::Opening => log.early.change_url(site, url),
            Phase::Open => {
                if self.append_url_change(&mut log, site, url) {
                    self.after_change(log);
                }
            }
            Phase::Closed => log.is_late = true,
        }
    }

    /// Appends a change of a URL. Returns false if there is no response that it could concern.
    pub fn append_url_change(&self, log: &mut Log, site: &[u8], url: &[u8]) -> bool {
        let sites = self.index.sites.read();
        let (Some(site_entry), Some(hash)) = (sites.named(site), self.hash_of(url)) else {
            return false;
        };
        let header = Header::new(Kind::UrlChange, hash, 0, site.len(), 0);
        let Some(header) = header.filter(|_| site_entry.urls.needs_change(hash)) else {
            return false;
        };
        let position = log.append(header, site.to_vec(), Bytes::new());
        site_entry.urls.note_change(hash, position);
        true
    }

    /// Drops all responses that some purges select, also after a restart.
    pub fn purge(&self, purges: &[Purge]) {
        let mut log = self.log();
        for purge in purges {
            match log.phase {
                Phase::Opening => log.early.purge(purge),
                Phase::Open => self.append_purge(&mut log, purge),
                Phase::Closed => log.is_late = true,
            }
        }
        self.after_change(log);
    }

    /// Appends a purge, and applies it to all earlier responses.
    pub fn append_purge(&self, log: &mut Log, purge: &Purge) {
        let head = record::encode_purge(purge);
        match Header::new(Kind::Purge, 0, 0, head.len(), 0) {
            Some(header) => {
                let position = log.append(header, head, Bytes::new());
                self.apply_purge(position, purge.clone());
            }
            // Not reached, because no URL or tag is that long. The purge of everything includes its selection.
            None => self.append_purge(log, &Purge::everything()),
        }
    }

    /// Wakes the thread after a change that must be written soon. Gives the log up if the disk does not respond.
    pub fn after_change(&self, mut log: MutexGuard<'_, Log>) {
        log.is_urgent = true;
        if log.is_overrun && log.phase == Phase::Open {
            self.is_ready.store(false, Ordering::SeqCst);
            log.close(CloseReason::Overrun);
        }
        drop(log);
        self.wake.notify_one();
    }

    /// Applies a purge to all responses before its position. A response is compared with the purges after it when it is
    /// read, except that a purge of everything drops all responses at once.
    pub fn apply_purge(&self, position: Position, purge: Purge) {
        let mut list = self.purge_list();
        if purge.site.is_none() && purge.selection == Selection::Everything {
            list.clear();
            drop(list);
            self.index.clear();
        } else if let Some(until) = list.add(position, purge) {
            drop(list);
            // There are too many purges, so those up to `until` were forgotten. Older responses can no longer be
            // compared with them.
            self.index.retain(|entry| entry.position > until);
        }
    }

    /// Returns true if a purge selects a response, or if its URL was changed.
    pub fn is_purged(&self, entry: &Entry, head: &record::ResponseHead<'_>) -> bool {
        let is_changed = |url| {
            let sites = self.index.sites.read();
            let urls = &sites.of(entry).urls;
            // Without a hash, the folder has been closed since the response was read, so the response is not used.
            self.hash_of(url)
                .is_none_or(|hash| urls.is_changed(hash, entry.position))
        };
        head.url.is_some_and(is_changed)
            || self
                .current_purge_list()
                .select(entry.position, head.key, head.url, &head.tags)
    }
}
