//! Lookup and reads of responses on disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use rocknet_proto::fields::Fields;

use super::super::entry::Entry;
use super::super::log::Phase;
use super::super::record::{self, HEADER, Header, Kind};
use super::Shared;
use crate::policy::Moment;
use crate::stored::StoredResponse;

impl Shared {
    /// Returns the entry of the response that a request with these fields selects, without waiting for the disk.
    pub fn find(&self, key: &[u8], request: &Fields<'_>, now_unix: u64) -> Option<Entry> {
        if !self.is_ready.load(Ordering::Acquire) {
            return None;
        }
        let hashes = self.hashes.load();
        let hashes = hashes.as_ref()?;
        let hash = hashes.of_key(key);
        let found = self.index.find(hash);
        if found.is_empty() {
            return None;
        }
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        // Most entries of a key have the same list of names, so the tag for a list is used again.
        let mut last = None;
        let selected = found.iter().rev().find(|entry| {
            let tag = match last {
                Some((number, tag)) if number == entry.names => tag,
                _ => names
                    .variation(entry.names, request)
                    .map(|variation| hashes.of_variation(&variation)),
            };
            last = Some((entry.names, tag));
            tag == Some(entry.variant)
        })?;
        let is_written = selected.position.to_number() < self.written.load(Ordering::Acquire);
        if !is_written || u64::from(selected.expires) < now_unix {
            return None;
        }
        if !selected.mark.is_hit() {
            self.index.mark_hit(hash, selected.position);
        }
        Some(*selected)
    }

    /// Reads a response. Waits for the disk. Returns `None` if it is not there any longer, or damaged.
    pub fn read(&self, entry: &Entry, key: &[u8], now: Moment) -> Option<StoredResponse> {
        let folder = self.folder()?;
        let result = folder
            .open_segment(entry.position.segment)
            .and_then(|file| read_record(&file, entry));
        let (head, body) = match result {
            Ok(record) => record,
            // The segment was dropped meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.drop_unreadable(entry);
                self.stats
                    .fail(&format!("cannot read a response, so its request is forwarded: {error}"));
                return None;
            }
        };
        let Some(response) = record::decode_response(&head) else {
            self.drop_unreadable(entry);
            self.stats.fail("a response is damaged, so its request is forwarded");
            return None;
        };
        // Another key has the same hash.
        if response.key != key {
            return None;
        }
        if self.is_purged(entry, &response) {
            self.index.remove_at(entry.hash, entry.position);
            return None;
        }
        response.into_stored(body, now)
    }

    /// Drops all responses for the key of a response that cannot be read. The log records this, so that a restart does
    /// not restore them. A restored response might be readable again, but outdated: the log records a change of a
    /// resource only while the index has a response for it.
    fn drop_unreadable(&self, entry: &Entry) {
        let mut log = self.log();
        if self.index.at(entry.hash, entry.position).is_none() {
            return;
        }
        match log.phase {
            Phase::Open => {
                self.append_removal(&mut log, entry.hash);
                self.after_change(log);
            }
            Phase::Opening | Phase::Closed => self.index.remove_at(entry.hash, entry.position),
        }
    }
}

/// Reads head and body of a response, and checks them.
pub(in crate::disk) fn read_record(file: &File, entry: &Entry) -> io::Result<(Bytes, Bytes)> {
    let mut bytes = vec![0; entry.length as usize];
    file.read_exact_at(&mut bytes, u64::from(entry.position.offset))?;
    let damaged = || io::Error::other("a record is damaged");
    let header = Header::decode(&bytes).ok_or_else(damaged)?;
    let is_same = header.kind == Kind::Response
        && header.position == entry.position
        && header.hash == entry.hash
        && header.length() == u64::from(entry.length);
    if !is_same {
        return Err(damaged());
    }
    let bytes = Bytes::from(bytes);
    let body_at = HEADER + header.head as usize;
    let (head, body) = (bytes.slice(HEADER..body_at), bytes.slice(body_at..));
    match record::crc(&head) == header.head_crc && record::crc(&body) == header.body_crc {
        true => Ok((head, body)),
        false => Err(damaged()),
    }
}
