//! Writes records to segments, and drops the oldest segments.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rocknet_io::temp_file::is_full;

use super::eviction::{IsInMemory, keep_responses};
use super::folder::Folder;
use super::log::{Record, WRITE};
use super::position::Position;
use super::record;
use super::shared::Shared;

/// The log of an open folder.
pub(super) struct Writer<'s> {
    pub shared: &'s Shared,
    pub folder: Arc<Folder>,
    pub is_in_memory: &'s IsInMemory,
    /// Seed of the hashes.
    pub seed: u64,
    pub segment_size: u32,
    /// Number and size of the older segments, in their order.
    pub segments: VecDeque<(u32, u64)>,
    /// The segment that is written.
    pub active: Option<(u32, File)>,
    /// End of the active segment.
    pub end: u64,
    /// Bytes that were not written yet.
    pub buffer: Vec<u8>,
}

impl Writer<'_> {
    /// Writes records.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system.
    pub fn write(&mut self, records: Vec<Record>) -> io::Result<()> {
        for Record { mut header, head, body } in records {
            if self
                .active
                .as_ref()
                .is_none_or(|(number, _)| *number != header.position.segment)
            {
                self.flush()?;
                self.seal()?;
                self.active = Some((header.position.segment, self.create(header.position.segment)?));
                self.end = 0;
            }
            (header.head_crc, header.body_crc) = (record::crc(&head), record::crc(&body));
            self.buffer.extend_from_slice(&header.encode());
            self.buffer.extend_from_slice(&head);
            self.buffer.extend_from_slice(&body);
            if self.buffer.len() as u64 >= WRITE {
                self.flush()?;
            }
        }
        self.flush()
    }

    /// Creates a segment.
    fn create(&mut self, number: u32) -> io::Result<File> {
        self.write_small(|folder| folder.create_segment(number))
    }

    /// Calls `write`, which creates a segment or writes another small file. If the disk is full, drops the oldest
    /// segment and calls it again.
    pub fn write_small<T>(&mut self, write: impl Fn(&Folder) -> io::Result<T>) -> io::Result<T> {
        loop {
            match write(&self.folder) {
                Err(error) if is_full(&error) && self.drop_oldest()? => {}
                result => return result,
            }
        }
    }

    /// Writes the buffer. On a full disk, older segments are dropped.
    pub fn flush(&mut self) -> io::Result<()> {
        while !self.buffer.is_empty() {
            let Some((_, file)) = &self.active else { break };
            match file.write_all_at(&self.buffer, self.end) {
                Ok(()) => {
                    self.end += self.buffer.len() as u64;
                    self.buffer.clear();
                }
                Err(error) if is_full(&error) && self.drop_oldest()? => {
                    self.shared
                        .stats
                        .fail("the disk is full, so the oldest responses were dropped");
                }
                Err(error) => return Err(error),
            }
        }
        // A large response does not stay in memory.
        self.buffer.shrink_to(WRITE as usize);
        Ok(())
    }

    /// Ends the active segment. It is on disk when the call returns, so that little is left to write when the log is
    /// closed.
    pub fn seal(&mut self) -> io::Result<()> {
        if let Some((number, file)) = self.active.take() {
            file.sync_data()?;
            self.segments.push_back((number, self.end));
            self.end = 0;
        }
        Ok(())
    }

    /// Drops the oldest segments until the log has room for another one.
    pub fn fit(&mut self) -> io::Result<()> {
        let capacity = self.shared.capacity.load(Ordering::Relaxed);
        // A segment also ends after a maximum number of records, so segments with small records are not full. Limiting
        // the number of segments therefore bounds the number of records.
        let most = (capacity / u64::from(self.segment_size)).max(2);
        loop {
            let size: u64 = self.segments.iter().map(|(_, size)| size).sum();
            let is_over = size + u64::from(self.segment_size) > capacity || self.segments.len() as u64 >= most;
            if !is_over || !self.evict_oldest()? {
                self.count_size();
                return Ok(());
            }
        }
    }

    /// Records the size of all segments in the counters.
    pub fn count_size(&self) {
        let size = self.segments.iter().map(|(_, size)| size).sum::<u64>() + self.end;
        self.shared.stats.size.store(size, Ordering::Relaxed);
    }

    /// Removes all segments.
    pub fn clear(&mut self) -> io::Result<()> {
        self.shared.index.clear();
        self.shared.purge_list().clear();
        self.active = None;
        self.end = 0;
        self.segments.clear();
        self.folder.remove_all()
    }

    /// Drops the oldest segment, after [`keep_responses`] has appended some of its responses to the log again. Returns
    /// false if there is no segment besides the active one.
    fn evict_oldest(&mut self) -> io::Result<bool> {
        if let Some((number, size)) = self.segments.front().copied() {
            // Maximum size of a new segment. If the capacity was reduced, the oldest segment may be larger than this.
            // `keep_responses` keeps at most this many bytes of it. If the log is short of space, it keeps at most half
            // of them, so that dropping the segment frees space.
            let most = u64::from(self.segment_size);
            // A segment that cannot be read is dropped as a whole.
            if let Err(error) = keep_responses(self.shared, &self.folder, self.is_in_memory, (number, size), most) {
                self.shared
                    .stats
                    .fail(&format!("cannot read a segment, so it was dropped: {error}"));
            }
        }
        self.drop_oldest()
    }

    /// Drops the oldest segment. Returns false if there is no segment besides the active one.
    fn drop_oldest(&mut self) -> io::Result<bool> {
        let Some((number, _)) = self.segments.pop_front() else {
            return Ok(false);
        };
        let shared = self.shared;
        shared.index.retain(|entry| entry.position.segment != number);
        let first = self.segments.front().map_or(number.wrapping_add(1), |(next, _)| *next);
        shared.purge_list().forget_before(Position {
            segment: first,
            offset: 0,
        });
        self.folder.remove_segment(number)?;
        Ok(true)
    }
}
