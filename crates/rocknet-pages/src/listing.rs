//! Renders directory listings as an HTML page or as JSON.

mod format;
mod grid;
mod html;
mod natural;
mod query;
mod readme;
mod toolbar;

use std::cmp::Ordering;

use super::text::{push_json, push_segment};
pub use format::UtcDateTime;
pub use html::html;
pub use query::{MAX_FILTER, Query};
pub use readme::{MAX_README, rank as readme_rank};

/// `Content-Security-Policy` of listings. It permits one script, by its hash, and pictures of the site. It blocks
/// injected scripts, and requests to other servers.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; \
    script-src 'sha256-XmlXrJpkaumCV5R16jJ+DLJ2WNxxjzRNhFNq+oDRFEw='; base-uri 'none'; form-action 'self'";

/// Script that filters the elements with `data-e` by their names while the user types. The page works without it.
pub const SCRIPT: &str = include_str!("assets/listing.js");

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
    /// Text that the names of the shown entries contain, without regard to case. Empty: all entries are shown.
    pub filter: &'a str,
    /// View of the HTML page.
    pub view: View,
    /// View of the site. Links to this view do not name it.
    pub default_view: View,
    /// True if the folder can be requested as a zip archive.
    pub offers_zip: bool,
    /// Readme file of the directory, which the HTML page shows.
    pub readme: Option<Readme>,
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

/// View of a listing as a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum View {
    /// A table with sizes and times.
    #[default]
    List,
    /// Tiles with the pictures of the folder.
    Grid,
}

/// Readme file of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readme {
    /// File name.
    pub name: String,
    /// Text, at most [`MAX_README`] bytes.
    pub text: String,
    /// True if the file is longer than the text.
    pub is_cut: bool,
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
    /// Returns the entries that the filter selects in the requested order, at most [`MAX_ENTRIES`]. Directories always
    /// come first. Entries with equal keys are sorted by name.
    fn sorted(&self) -> Vec<&ListingEntry> {
        let text = self.filter.to_lowercase();
        let is_shown = |entry: &&ListingEntry| text.is_empty() || entry.name.to_lowercase().contains(&text);
        let mut entries: Vec<&ListingEntry> = self.entries.iter().filter(is_shown).collect();
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

    /// Returns true if the entries are sorted by `sort`, and the direction in which a link by this key sorts them. The
    /// link of the current key reverses the direction. The link of another key starts with the most useful one: names
    /// ascending, sizes and times descending.
    fn next_order(&self, sort: SortKey) -> (bool, SortOrder) {
        let is_current = self.sort == sort;
        let ascends = match is_current {
            true => self.order == SortOrder::Desc,
            false => sort == SortKey::Name,
        };
        (is_current, if ascends { SortOrder::Asc } else { SortOrder::Desc })
    }

    /// Returns true if the directory has more entries than the listing shows, apart from the filter.
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

    /// Returns the class of the entry's icon in `assets/listing.css`: `d` for a directory, `i` for an image, `z` for an
    /// archive, `m` for audio or video, and `f` for any other file.
    fn icon(&self) -> &'static str {
        if self.kind == EntryKind::Directory {
            return "d";
        }
        let extension = self.name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let is = |known: &[&str]| known.iter().any(|word| word.eq_ignore_ascii_case(extension));
        if is(&[
            "avif", "bmp", "gif", "ico", "jpeg", "jpg", "jxl", "png", "svg", "tiff", "webp",
        ]) {
            "i"
        } else if is(&[
            "7z", "br", "bz2", "deb", "gz", "iso", "jar", "rar", "rpm", "tar", "tgz", "xz", "zip", "zst",
        ]) {
            "z"
        } else if is(&[
            "aac", "avi", "flac", "m4a", "m4v", "mkv", "mov", "mp3", "mp4", "ogg", "opus", "wav", "webm",
        ]) {
            "m"
        } else {
            "f"
        }
    }
}

impl View {
    const fn word(self) -> &'static str {
        match self {
            View::List => "list",
            View::Grid => "grid",
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

/// Appends text that is already HTML.
fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Number of bytes reserved for a JSON entry with a name of ordinary length.
const JSON_ENTRY_RESERVE: usize = 128;

#[cfg(test)]
mod tests;
