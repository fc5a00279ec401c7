//! Renders directory listings as an HTML page or as JSON.

mod format;
mod html;
mod natural;

use std::cmp::Ordering;

use super::text::{push_json, push_segment};
pub use html::html;

/// A directory to list. `entries` may have any order, because the listing sorts them.
#[derive(Debug, Clone)]
pub struct Listing<'a> {
    /// Decoded path of the request; begins and ends with `/`.
    pub path: &'a str,
    /// Entries of the directory.
    pub entries: Vec<ListingEntry>,
    /// Key by which entries are sorted.
    pub sort: SortKey,
    /// Direction in which entries are sorted.
    pub order: SortOrder,
    /// True if the directory has more entries than `entries`. The HTML page then notes that the list is incomplete.
    pub truncated: bool,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingEntry {
    /// File name: one path segment.
    pub name: String,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Size in bytes, used only for [`EntryKind::File`].
    pub size: u64,
    /// Time of the last change, in seconds since 1970-01-01T00:00:00Z; `None` if unknown.
    pub modified_unix: Option<i64>,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory. Its URL ends with `/`.
    Directory,
    /// A regular file.
    File,
    /// A socket, pipe, device or broken symbolic link. It is listed without a hyperlink, because the server does not
    /// serve it.
    Other,
}

/// The key by which entries are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortKey {
    /// Name, in natural order.
    #[default]
    Name,
    /// Size, then name.
    Size,
    /// Time of the last change, then name. An unknown time is the earliest.
    Time,
}

/// The direction in which entries are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortOrder {
    /// Ascending.
    #[default]
    Asc,
    /// Descending.
    Desc,
}

/// Maximum number of entries in one response. They make about 2 MB of HTML, which a phone can still scroll and which
/// one core renders in about 20 ms.
pub const MAX_ENTRIES: usize = 10_000;

/// Parses `sort=name|size|time` and `order=asc|desc` from a query. If a key is repeated, its first value is used. Other
/// keys are ignored, and an unknown value selects the default.
pub fn parse_query(query: &[u8]) -> (SortKey, SortOrder) {
    let value = |key: &[u8]| {
        query
            .split(|&byte| byte == b'&')
            .find_map(|pair| pair.strip_prefix(key).and_then(|rest| rest.strip_prefix(b"=")))
    };
    let sort = match value(b"sort") {
        Some(b"size") => SortKey::Size,
        Some(b"time") => SortKey::Time,
        _ => SortKey::Name,
    };
    let order = if value(b"order") == Some(b"desc") {
        SortOrder::Desc
    } else {
        SortOrder::Asc
    };
    (sort, order)
}

/// Renders the listing as a JSON array of `{name, type, size, modified, url}`, in the requested order.
///
/// `size` is null except for files, `modified` is null if unknown, and `url` is null if the server does not serve the
/// entry. The array has at most [`MAX_ENTRIES`] elements and does not show that entries are missing.
pub fn json(listing: &Listing<'_>) -> Vec<u8> {
    let entries = listing.sorted();
    let mut out = Vec::with_capacity(2 + entries.len() * JSON_ENTRY_RESERVE);
    out.push(b'[');
    for (index, entry) in entries.into_iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"\n{\"name\":" } else { b",\n{\"name\":" });
        push_json(&mut out, &entry.name);
        out.extend_from_slice(match entry.kind {
            EntryKind::Directory => b",\"type\":\"directory\",\"size\":".as_slice(),
            EntryKind::File => b",\"type\":\"file\",\"size\":",
            EntryKind::Other => b",\"type\":\"other\",\"size\":",
        });
        match entry.kind {
            EntryKind::File => out.extend_from_slice(entry.size.to_string().as_bytes()),
            EntryKind::Directory | EntryKind::Other => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"modified\":");
        match entry.modified_unix {
            Some(seconds) => push_json(&mut out, &format::UtcDateTime::from_unix(seconds).rfc3339()),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"url\":");
        if entry.kind == EntryKind::Other {
            out.extend_from_slice(b"null");
        } else {
            out.push(b'"');
            entry.push_href(&mut out);
            out.push(b'"');
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"\n]\n");
    out
}

impl Listing<'_> {
    /// Returns the entries in the requested order, at most [`MAX_ENTRIES`]. Directories always come first. Entries with
    /// equal keys are sorted by name.
    fn sorted(&self) -> Vec<&ListingEntry> {
        let mut entries: Vec<&ListingEntry> = self.entries.iter().collect();
        entries.sort_unstable_by(|a, b| {
            let by_name = || natural::compare(&a.name, &b.name);
            let (key, then) = match self.sort {
                SortKey::Name => (by_name(), Ordering::Equal),
                SortKey::Size => (a.counted_size().cmp(&b.counted_size()), by_name()),
                SortKey::Time => (a.modified_unix.cmp(&b.modified_unix), by_name()),
            };
            let key = if self.order == SortOrder::Desc {
                key.reverse()
            } else {
                key
            };
            (a.kind != EntryKind::Directory)
                .cmp(&(b.kind != EntryKind::Directory))
                .then(key)
                .then(then)
        });
        entries.truncate(MAX_ENTRIES);
        entries
    }

    /// Returns true if the directory has more entries than the listing shows.
    fn is_cut(&self) -> bool {
        self.truncated || self.entries.len() > MAX_ENTRIES
    }
}

impl ListingEntry {
    /// Returns the size that counts in the order and in the totals: 0 unless the entry is a file.
    fn counted_size(&self) -> u64 {
        if self.kind == EntryKind::File { self.size } else { 0 }
    }

    /// Appends the relative URL of the entry. `javascript:x` is not read as a URL with a scheme, and `//x` does not
    /// lead out of the directory, because `:` and `/` are percent-encoded. The prefix `./` is a second safeguard.
    fn push_href(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"./");
        push_segment(out, &self.name);
        if self.kind == EntryKind::Directory {
            out.push(b'/');
        }
    }
}

impl SortKey {
    const fn word(self) -> &'static str {
        match self {
            SortKey::Name => "name",
            SortKey::Size => "size",
            SortKey::Time => "time",
        }
    }
}

impl SortOrder {
    const fn word(self) -> &'static str {
        match self {
            SortOrder::Asc => "asc",
            SortOrder::Desc => "desc",
        }
    }
}

/// Number of bytes reserved for a JSON entry with a name of ordinary length.
const JSON_ENTRY_RESERVE: usize = 128;

#[cfg(test)]
mod tests;
