//! Appends the responses of a segment that were used to the log again, before the segment is dropped.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use super::folder::Folder;
use super::index::{Entry, Mark};
use super::log::Phase;
use super::position::Position;
use super::record::{self, HEADER, Header, Kind};
use super::shared::{Shared, read_record};

/// Returns true for keys that the memory has.
pub(super) type IsInMemory = dyn Fn(&[u8]) -> bool + Send;

/// Appends the responses of a segment again that were used or are in memory. `room`: maximum size in bytes.
pub(super) fn keep_used(
    shared: &Shared,
    folder: &Folder,
    is_in_memory: &IsInMemory,
    (number, size): (u32, u64),
    mut room: u64,
) -> io::Result<()> {
    let file = folder.open_segment(number)?;
    let mut at = 0;
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
        if header.kind != Kind::Response || header.length() > room {
            continue;
        }
        let Some(entry) = shared.index.at(header.hash, position) else {
            continue;
        };
        if !entry.mark.is_hit() && !is_key_in_memory(is_in_memory, &file, &header)? {
            continue;
        }
        let Ok((head, body)) = read_record(&file, &entry) else {
            continue;
        };
        let Some(response) = record::decode_response(&head) else {
            continue;
        };
        let mut log = shared.log();
        // At the end of the log, the response would be preferred to a newer one that depends on other fields.
        let is_outdated = |other: &Entry| other.position > position && other.names != entry.names;
        // Changes wait for the lock, so the response is still valid when it is appended.
        if log.phase != Phase::Open
            || shared.index.find(header.hash).iter().any(is_outdated)
            || !log.has_room(header.length())
            || shared.index.at(header.hash, position).is_none()
            || shared.is_banned(position, &response)
        {
            continue;
        }
        (header.head_crc, header.body_crc) = (0, 0);
        let mut kept = entry;
        kept.mark = Mark::of_site(entry.mark.site());
        room -= header.length();
        kept.position = log.append(header, head.to_vec(), body);
        // A lookup does not find the response until it is written.
        log.is_urgent = true;
        shared.index.insert(kept);
        shared.stats.kept.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Returns true if the memory has the resource of a record. The key is at the beginning of the head.
fn is_key_in_memory(is_in_memory: &IsInMemory, file: &File, header: &Header) -> io::Result<bool> {
    let mut start = [0; 4 + crate::key::MAX_KEY];
    let count = start.len().min(header.head as usize);
    let at = u64::from(header.position.offset) + HEADER as u64;
    file.read_exact_at(&mut start[..count], at)?;
    let key = super::format::Reader(&start[..count]).bytes();
    Ok(key.is_some_and(is_in_memory))
}
