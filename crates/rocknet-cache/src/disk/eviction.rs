//! Keeps responses of a segment that is about to be dropped, by appending them to the log again. While the log has
//! space, all responses that have not expired are kept. Otherwise a response is kept only if it was used, or if a
//! memory store of the cache has it too.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use super::entry::{Entry, Mark};
use super::folder::Folder;
use super::log::{MIN_SHARE, Phase};
use super::position::Position;
use super::record::{self, HEADER, Header, Kind};
use super::shared::{Shared, read_record};
use super::time::unix_s;

/// Returns true for the keys of responses that a memory store of the cache has.
pub(super) type IsInMemory = dyn Fn(&[u8]) -> bool + Send;

/// Divisor of the capacity. The log has space while the responses in the index take less than a quarter of it. They are
/// then kept unless they have expired, because the rest of the log holds only replaced and dropped responses.
///
/// A segment ends when the next record does not fit. Segments are therefore at least half full on average, and a
/// quarter of the capacity fills at most half of the segments. The other half is free for new responses. So for each
/// byte of a new response, at most one byte of an older response is appended again, on average.
const SPACE_DIVISOR: u64 = 4;

/// Divisor of the size of a segment. If the log has no space, at most half of a segment is kept, so that dropping the
/// segment frees the other half.
const KEPT_DIVISOR: u64 = 2;

/// Appends responses of a segment to the log again. `number` and `size` are those of the segment. `most`: maximum size
/// of a new segment in bytes.
pub(super) fn keep_responses(
    shared: &Shared,
    folder: &Folder,
    is_in_memory: &IsInMemory,
    (number, size): (u32, u64),
    most: u64,
) -> io::Result<()> {
    let file = folder.open_segment(number)?;
    let (mut at, mut kept_bytes, now_unix) = (0, 0, unix_s());
    while at + HEADER as u64 <= size && !shared.is_closing() {
        let position = Position {
            segment: number,
            offset: u32::try_from(at).unwrap_or(u32::MAX),
        };
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, at)?;
        let Some(mut header) = Header::decode(&header).filter(|header| header.position == position) else {
            break;
        };
        at += header.length();
        // The number of records in a segment is limited, so even a small response takes up `MIN_SHARE` bytes. A
        // response thus takes up this share or its length, whichever is larger. The sum of both is an upper bound.
        let shares = shared.index.len() as u64 * u64::from(MIN_SHARE);
        let has_space = shared.index.bytes() + shares < shared.capacity.load(Ordering::Relaxed) / SPACE_DIVISOR;
        let room = if has_space { most } else { most / KEPT_DIVISOR };
        if header.kind != Kind::Response || kept_bytes + header.length() > room {
            continue;
        }
        let Some(entry) = shared.index.at(header.hash, position) else {
            continue;
        };
        let is_expired = u64::from(entry.expires) < now_unix;
        if is_expired || !has_space && !entry.mark.is_hit() && !is_key_in_memory(is_in_memory, &file, &header)? {
            continue;
        }
        let Ok((head, body)) = read_record(&file, &entry) else {
            continue;
        };
        let Some(response) = record::decode_response(&head) else {
            continue;
        };
        let mut log = shared.log();
        // If a request matches several responses, a lookup selects the last one in the log. At the end of the log, this
        // response would therefore hide a newer one whose `Vary` has other names (`names`).
        let is_outdated = |other: &Entry| other.position > position && other.names != entry.names;
        // Changes wait for the lock, so the response is still valid when it is appended.
        if log.phase != Phase::Open
            || shared.index.find(header.hash).iter().any(is_outdated)
            || !log.has_room(header.length())
            || shared.index.at(header.hash, position).is_none()
            || shared.is_purged(&entry, &response)
        {
            continue;
        }
        // The checksums are computed when the record is written.
        (header.head_crc, header.body_crc) = (0, 0);
        let mut kept = entry;
        kept.mark = Mark::of_site(entry.mark.site());
        kept_bytes += header.length();
        kept.position = log.append(header, head.to_vec(), body);
        // The index then has the new position, where lookups find the response only once its record is written.
        log.is_urgent = true;
        // For a new response, `Shared::note_url` is called too, so that a later change of the URL invalidates it. This
        // response needs no call: its URL is still noted, because `is_purged` has found no change of the URL.
        shared.index.insert(kept);
        shared.stats.kept.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Returns true if a memory store has the key of a record. The head of the record begins with the length of the key in
/// 4 bytes, and the key follows.
fn is_key_in_memory(is_in_memory: &IsInMemory, file: &File, header: &Header) -> io::Result<bool> {
    let mut start = [0; 4 + crate::key::MAX_KEY];
    let count = start.len().min(header.head as usize);
    let at = u64::from(header.position.offset) + HEADER as u64;
    file.read_exact_at(&mut start[..count], at)?;
    let key = super::format::Reader(&start[..count]).bytes();
    Ok(key.is_some_and(is_in_memory))
}
