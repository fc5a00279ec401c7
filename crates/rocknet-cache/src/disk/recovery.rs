//! Reads the index from the segments at start.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::entry::{Entry, Mark};
use super::folder::Folder;
use super::position::Position;
use super::record::{self, HEADER, Header, Kind};
use super::shared::Shared;

/// Maximum time for reading all segments. A log that takes longer is emptied.
const MAX_TIME: Duration = Duration::from_secs(300);

/// Size of a read in bytes. Most heads are shorter.
const WINDOW: usize = 4096;

/// Reason why the index was not read.
#[derive(Debug)]
pub(super) enum RecoveryError {
    /// The server stops.
    Closed,
    /// Reading took too long.
    TooLong,
    /// The last segment is damaged. Removals recorded in it may be lost, and so may a purge that covers all responses.
    Damaged,
    /// The index cannot be read.
    System(io::Error),
}

/// Part of a segment that has been read.
struct Window<'f> {
    file: &'f File,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// Returns bytes of the segment; fewer at its end.
    fn get(&mut self, at: u64, count: usize) -> io::Result<&[u8]> {
        let end = self.start + self.bytes.len() as u64;
        if at < self.start || at + count as u64 > end {
            self.bytes.resize(count.max(WINDOW), 0);
            let mut filled = 0;
            while filled < self.bytes.len() {
                match self.file.read_at(&mut self.bytes[filled..], at + filled as u64) {
                    Ok(0) => break,
                    Ok(read) => filled += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            self.bytes.truncate(filled);
            self.start = at;
        }
        let from = usize::try_from(at - self.start)
            .unwrap_or(usize::MAX)
            .min(self.bytes.len());
        let to = from.saturating_add(count).min(self.bytes.len());
        Ok(&self.bytes[from..to])
    }
}

/// Reads the index from segments in their order.
///
/// A removal or purge may be missing in a part that is damaged, so all responses before it are dropped. Only the end of
/// the last segment may be torn, because a killed process was writing there. It is cut off, so that the segment is
/// whole from then on. `was_closed`: the last process has ended in order, so nothing may be torn.
pub(super) fn replay(
    shared: &Shared,
    segments: &[(u32, u64)],
    was_closed: bool,
    now_unix: u64,
) -> Result<(), RecoveryError> {
    let deadline = Instant::now() + MAX_TIME;
    let Some(folder) = shared.folder() else { return Ok(()) };
    let (mut previous, mut trims) = (None, Trims::default());
    for (count, (number, size)) in segments.iter().enumerate() {
        if shared.is_closing() {
            return Err(RecoveryError::Closed);
        }
        if Instant::now() > deadline {
            return Err(RecoveryError::TooLong);
        }
        if previous.is_some_and(|previous: u32| previous.checked_add(1) != Some(*number)) {
            forget(shared, *number, "the segment before it is missing");
        }
        previous = Some(*number);
        let is_last = count + 1 == segments.len();
        let end = replay_segment(shared, &folder, (*number, *size), now_unix, &mut trims);
        match end.map_err(RecoveryError::System)? {
            SegmentEnd::Whole => {}
            SegmentEnd::Torn(end) if is_last && !was_closed => {
                shared.stats.torn.fetch_add(1, Ordering::Relaxed);
                folder.truncate_segment(*number, end).map_err(RecoveryError::System)?;
            }
            _ if is_last => return Err(RecoveryError::Damaged),
            _ => forget(shared, *number, "it is damaged"),
        }
    }
    // One search for all trims, of which there may be many.
    shared.index.retain(|entry| {
        let before = trims.get(&entry.mark.site());
        before.is_none_or(|before| entry.position >= *before)
    });
    Ok(())
}

/// Positions before which the responses of a site are dropped, by its number.
type Trims = HashMap<u16, Position>;

/// Drops all responses that were read so far.
fn forget(shared: &Shared, segment: u32, why: &str) {
    tracing::warn!("response cache on disk: segment {segment:08x}: {why}; older responses are not used");
    shared.stats.errors.fetch_add(1, Ordering::Relaxed);
    shared.index.clear();
    shared.purge_list().clear();
}

/// End of a segment.
enum SegmentEnd {
    /// The last record ends with the segment.
    Whole,
    /// Only the beginning of the last record was written, at this offset.
    Torn(u64),
    /// A header is damaged, and the records after it are not known.
    Damaged,
}

/// Reads a segment.
fn replay_segment(
    shared: &Shared,
    folder: &Folder,
    (number, size): (u32, u64),
    now_unix: u64,
    trims: &mut Trims,
) -> io::Result<SegmentEnd> {
    let file = folder.open_segment(number)?;
    let mut window = Window {
        file: &file,
        start: 0,
        bytes: Vec::new(),
    };
    let mut at = 0;
    while at < size {
        let position = Position {
            segment: number,
            offset: u32::try_from(at).unwrap_or(u32::MAX),
        };
        let bytes = window.get(at, HEADER)?;
        if bytes.len() < HEADER {
            return Ok(SegmentEnd::Torn(at));
        }
        let Some(header) = Header::decode(bytes).filter(|header| header.position == position) else {
            return Ok(SegmentEnd::Damaged);
        };
        if at + header.length() > size {
            return Ok(SegmentEnd::Torn(at));
        }
        let head = window.get(at + HEADER as u64, header.head as usize)?;
        let is_intact = head.len() == header.head as usize && record::crc(head) == header.head_crc;
        match (header.kind, is_intact.then_some(head)) {
            (Kind::Response, head) => add(shared, &header, head, now_unix),
            (Kind::Removal, _) => {
                shared.index.remove(header.hash);
            }
            (Kind::Purge, head) => match head.and_then(record::decode_purge) {
                Some(purge) => shared.apply_purge(header.position, purge),
                None => forget(shared, number, "a purge is damaged"),
            },
            (Kind::Trim, head) => match head.and_then(record::decode_trim) {
                Some((site, before)) => {
                    if let Some(site) = shared.index.sites.number(site) {
                        trims.insert(site, before);
                    }
                }
                None => forget(shared, number, "a record that trims a site to its quota is damaged"),
            },
            (Kind::UrlChange, Some(site)) => {
                if let Some(site) = shared.index.sites.read().named(site) {
                    site.urls.note_change(header.hash, position);
                }
            }
            (Kind::UrlChange, None) => forget(shared, number, "a record that invalidates a URL is damaged"),
        }
        at += header.length();
    }
    Ok(SegmentEnd::Whole)
}

/// Adds a response to the index. One that is damaged or expired still takes the place of older ones.
fn add(shared: &Shared, header: &Header, head: Option<&[u8]>, now_unix: u64) {
    let response = head.and_then(record::decode_response);
    let url = response.as_ref().and_then(|response| response.url);
    let entry = response.and_then(|response| {
        Some(Entry {
            hash: header.hash,
            position: header.position,
            length: u32::try_from(header.length()).ok()?,
            variant: header.variant,
            expires: response.expires(),
            names: shared.number_of_name_list(&response.variation)?,
            mark: Mark::of_site(shared.number_of_site(response.key)?),
        })
    });
    let Some(entry) = entry else {
        shared.index.remove(header.hash);
        return;
    };
    shared.index.insert(entry);
    shared.note_url(&entry, url);
    if u64::from(entry.expires) < now_unix {
        shared.index.remove_at(entry.hash, entry.position);
    }
}
