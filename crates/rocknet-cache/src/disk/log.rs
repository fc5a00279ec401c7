//! End of the log: records that wait for the thread that writes them.
//!
//! A record gets its position when it is appended, under one lock, and the index is changed under the same lock. So
//! the order of the log is the order of the changes, and replaying it after a restart leads to the same index.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;

use super::position::Position;
use super::record::Header;
use crate::purge::Purge;

/// Size of the waiting records in bytes above which no response is appended. Removals and purges still are.
pub(super) const MAX_WAITING: u64 = 64 << 20;

/// Size of a write in bytes.
pub(super) const WRITE: u64 = 4 << 20;

/// Number of waiting records from which on no response is appended. Removals and purges still are.
const MAX_WAITING_RECORDS: usize = 16 * 1024;

/// Maximum number of waiting records. More of them, all removals and purges, wait only if the disk does not respond, so
/// the log is given up.
const MAX_RECORDS: usize = 256 * 1024;

/// Maximum memory of the keys, purges and URLs of changes before the log is open, in bytes.
const MAX_EARLY: usize = 8 << 20;

/// Maximum number of hashes of changes before the log is open.
const MAX_EARLY_HASHES: usize = 1 << 20;

/// A record that waits.
#[derive(Debug)]
pub(super) struct Record {
    /// Header without checksums.
    pub header: Header,
    pub head: Vec<u8>,
    pub body: Bytes,
}

/// State of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The log is not open: another process has it, its index is being read, or it has to be emptied.
    Opening,
    /// Records are accepted.
    Open,
    /// The thread has ended or ends.
    Closed,
}

/// A site and one of its URLs.
pub(super) type SiteUrl = (Box<[u8]>, Box<[u8]>);

/// Changes of resources before the log was open.
#[derive(Debug, Default)]
pub(super) struct EarlyChanges {
    /// Keys of resources that were changed before the seed of the hashes was known.
    pub keys: Vec<Box<[u8]>>,
    /// Hashes of keys of resources that were changed.
    pub hashes: HashSet<u64>,
    /// Purges.
    pub purges: Vec<Purge>,
    /// Changed URLs with their sites, for responses whose keys are made by a template.
    pub urls: HashSet<SiteUrl>,
    /// Estimated memory of the keys, purges and URLs in bytes.
    size: usize,
    /// True if there were too many changes, so that the log must be emptied.
    pub are_lost: bool,
}

impl EarlyChanges {
    /// Adds the removal of a resource that has changed. `hash`: hash of its key, if the seed is known.
    pub fn remove(&mut self, hash: Option<u64>, key: &[u8]) {
        if self.are_lost {
            return;
        }
        if let Some(hash) = hash {
            if self.hashes.len() < MAX_EARLY_HASHES {
                self.hashes.insert(hash);
            } else {
                self.lose();
            }
        } else if self.has_room(key.len() + size_of::<Box<[u8]>>()) {
            self.keys.push(key.into());
        }
    }

    pub fn purge(&mut self, purge: &Purge) {
        // 512 bytes are an estimate of the memory of a purge.
        if !self.purges.contains(purge) && self.has_room(512) {
            self.purges.push(purge.clone());
        }
    }

    /// Adds a change of a URL of a site.
    pub fn change_url(&mut self, site: &[u8], url: &[u8]) {
        let change = (Box::from(site), Box::from(url));
        if !self.urls.contains(&change) && self.has_room(site.len() + url.len() + 2 * size_of_val(&change)) {
            self.urls.insert(change);
        }
    }

    pub fn is_empty(&self) -> bool {
        let is_without_keys = self.keys.is_empty() && self.hashes.is_empty() && self.urls.is_empty();
        is_without_keys && self.purges.is_empty() && !self.are_lost
    }

    /// Counts `size` more bytes. Returns false if there are too many, so that all changes are forgotten.
    fn has_room(&mut self, size: usize) -> bool {
        self.size += size;
        if self.size > MAX_EARLY {
            self.lose();
        }
        !self.are_lost
    }

    /// Forgets all changes, so that the log must be emptied.
    fn lose(&mut self) {
        *self = EarlyChanges {
            size: self.size,
            are_lost: true,
            ..EarlyChanges::default()
        };
    }

    /// Forgets all changes, so that the log must be emptied, if some of them are hashes. Called before another process
    /// may use the folder: it may choose another seed, and these hashes would then match no key.
    pub fn lose_if_hashed(&mut self) {
        if !self.hashes.is_empty() {
            self.lose();
        }
    }
}

/// Reason for closing the log before its thread ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// Too many records waited. The thread has yet to empty the log.
    Overrun,
    /// The thread got an error, and empties the log itself.
    Failed,
}

/// End of the log.
#[derive(Debug)]
pub(super) struct Log {
    pub phase: Phase,
    /// Position of the next record.
    pub next: Position,
    /// Number of records in the last segment.
    records: u32,
    /// Size of a segment in bytes.
    pub segment_size: u32,
    pub waiting: VecDeque<Record>,
    waiting_bytes: u64,
    pub early: EarlyChanges,
    /// True if a change came after the log was closed for good, so that the change is not recorded.
    pub is_late: bool,
    /// True if the thread must write at once.
    pub is_urgent: bool,
    /// True once too many records wait, so that the thread must empty the log.
    pub is_overrun: bool,
}

/// Minimum share of a segment for each record, in bytes: a segment has at most one record for each of these shares. It
/// bounds the number of records, and so the memory of the index, by the size of the log.
pub(super) const MIN_SHARE: u32 = 4096;

impl Log {
    /// Creates the end of a log that is not open yet.
    pub fn new() -> Log {
        Log {
            phase: Phase::Opening,
            next: Position::default(),
            records: 0,
            segment_size: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            early: EarlyChanges::default(),
            is_late: false,
            is_urgent: false,
            is_overrun: false,
        }
    }

    /// Begins to accept records, from the beginning of a segment.
    pub fn open(&mut self, segment: u32, segment_size: u32) {
        *self = Log {
            phase: Phase::Open,
            next: Position { segment, offset: 0 },
            segment_size,
            ..Log::new()
        };
    }

    /// Drops the waiting records, and accepts none until the log is opened again. The thread must empty the log before
    /// that, because removals and purges may be among the dropped records. Until it is empty, changes need not be
    /// collected (`are_lost`).
    pub fn close(&mut self, reason: CloseReason) {
        let phase = match self.phase {
            Phase::Closed => Phase::Closed,
            Phase::Opening | Phase::Open => Phase::Opening,
        };
        self.early.lose();
        *self = Log {
            phase,
            early: std::mem::take(&mut self.early),
            is_late: self.is_late,
            is_overrun: reason == CloseReason::Overrun,
            ..Log::new()
        };
    }

    /// Returns true if a response of this length may be appended.
    pub fn has_room(&self, length: u64) -> bool {
        length <= u64::from(self.segment_size)
            && self.waiting_bytes + length <= MAX_WAITING
            && self.waiting.len() < MAX_WAITING_RECORDS
    }

    /// Returns true if the waiting records fill a write.
    pub fn fills_write(&self) -> bool {
        self.waiting_bytes >= WRITE
    }

    /// Appends a record, and returns its position.
    pub fn append(&mut self, mut header: Header, head: Vec<u8>, body: Bytes) -> Position {
        let length = header.length();
        let is_full = u64::from(self.next.offset) + length > u64::from(self.segment_size)
            || self.records >= self.segment_size / MIN_SHARE;
        if is_full && self.next.offset > 0 {
            self.begin_segment();
        }
        header.position = self.next;
        self.next = header.end();
        self.records += 1;
        self.waiting_bytes += length;
        self.is_overrun |= self.waiting.len() >= MAX_RECORDS;
        self.waiting.push_back(Record { header, head, body });
        header.position
    }

    /// Lets the next record begin a new segment.
    pub fn begin_segment(&mut self) {
        self.next = Position {
            segment: self.next.segment.wrapping_add(1),
            offset: 0,
        };
        self.records = 0;
    }

    /// Takes waiting records with a total size of about `max` bytes, at least one.
    pub fn take(&mut self, max: u64) -> Vec<Record> {
        let mut taken = Vec::new();
        let mut size = 0;
        while let Some(record) = self.waiting.front()
            && (taken.is_empty() || size + record.header.length() <= max)
        {
            size += record.header.length();
            taken.extend(self.waiting.pop_front());
        }
        self.waiting_bytes -= size;
        if self.waiting.is_empty() {
            self.is_urgent = false;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Kind;
    use super::*;

    fn record(length: usize) -> Header {
        Header::new(Kind::Response, 1, 0, 0, length - super::super::record::HEADER).expect("a header")
    }

    #[test]
    fn records_get_positions_in_order() {
        let mut log = Log::new();
        log.open(7, 16 * 1024);
        let mut append = |length| {
            let position = log.append(record(length), Vec::new(), Bytes::new());
            (position.segment, position.offset)
        };
        assert_eq!(append(6000), (7, 0));
        assert_eq!(append(6000), (7, 6000));
        assert_eq!(append(6000), (8, 0));
        // A segment has few small records.
        assert_eq!(append(100), (8, 6000));
        assert_eq!(append(100), (8, 6100));
        assert_eq!(append(100), (8, 6200));
        assert_eq!(append(100), (9, 0));
        let lengths = |log: &mut Log, max| {
            log.take(max)
                .iter()
                .map(|record| record.header.length())
                .collect::<Vec<_>>()
        };
        assert_eq!(lengths(&mut log, 12_000), [6000, 6000]);
        assert_eq!(lengths(&mut log, 1), [6000]);
        assert_eq!(lengths(&mut log, 1000), [100; 4]);
        assert!(log.take(1).is_empty() && log.waiting_bytes == 0);
    }

    #[test]
    fn a_disk_that_does_not_respond_bounds_the_memory() {
        let mut log = Log::new();
        log.open(0, 64 << 20);
        assert!(!log.has_room((64 << 20) + 1));
        while log.has_room(1 << 20) {
            log.append(record(1 << 20), Vec::new(), Bytes::new());
        }
        assert_eq!(log.waiting_bytes, MAX_WAITING);
        let removal = Header::new(Kind::Removal, 1, 0, 0, 0).expect("a header");
        while !log.is_overrun {
            log.append(removal, Vec::new(), Bytes::new());
        }
        assert_eq!(log.waiting.len(), MAX_RECORDS + 1);
    }

    #[test]
    fn changes_before_the_log_is_open_are_bounded() {
        let mut early = EarlyChanges::default();
        early.purge(&Purge::everything());
        early.purge(&Purge::everything());
        assert_eq!(early.purges.len(), 1);
        while !early.are_lost {
            early.remove(None, &[0; 4096]);
        }
        assert!(early.keys.is_empty() && early.purges.is_empty());
        let mut early = EarlyChanges::default();
        early.change_url(b"s", b"h\0/");
        early.change_url(b"s", b"h\0/");
        assert!(early.urls.len() == 1 && !early.is_empty());
        (0..1_u32 << 20).for_each(|number| early.change_url(b"s", &number.to_le_bytes()));
        assert!(early.are_lost && early.urls.is_empty());
        let mut early = EarlyChanges::default();
        (0..MAX_EARLY_HASHES as u64).for_each(|hash| early.remove(Some(hash), b""));
        assert!(!early.are_lost && early.hashes.len() == MAX_EARLY_HASHES);
        early.lose_if_hashed();
        assert!(early.are_lost && early.hashes.is_empty());
        // The log will be emptied, so further changes are not collected.
        early.remove(Some(1), b"");
        assert!(early.hashes.is_empty());
    }
}
