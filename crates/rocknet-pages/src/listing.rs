//! What a directory holds, as a page to look at and as JSON for programs.

mod figures;
mod html;
mod natural;

use std::cmp::Ordering;

use super::text::{push_json, push_segment};
pub use html::html;

/// A directory to show. The order of `entries` does not matter: the answer sorts them.
#[derive(Debug, Clone)]
pub struct Listing<'a> {
    /// The request's path, decoded; begins and ends with `/`.
    pub path: &'a str,
    pub entries: Vec<Entry>,
    pub sort: Sort,
    pub order: Order,
    /// The directory holds more than `entries`, and the page says so.
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// One path segment, as in the file system.
    pub name: String,
    pub kind: Kind,
    /// Bytes; counts for a [`Kind::File`] only.
    pub size: u64,
    /// Seconds since 1970-01-01T00:00:00Z.
    pub modified_unix: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
    /// A socket, pipe, device or broken link: named, never linked, for the server will not serve it.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    #[default]
    Name,
    Size,
    Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    #[default]
    Asc,
    Desc,
}

/// Most entries in one answer: about 2 MB of page, which a phone still scrolls and a core renders in some 20 ms.
pub const MAX_ENTRIES: usize = 10_000;

/// Reads `sort=name|size|time` and `order=asc|desc` from a query; the first of each counts, anything else is ignored.
pub fn parse_query(query: &[u8]) -> (Sort, Order) {
    let value = |key: &[u8]| {
        query
            .split(|&byte| byte == b'&')
            .find_map(|pair| pair.strip_prefix(key).and_then(|rest| rest.strip_prefix(b"=")))
    };
    let sort = match value(b"sort") {
        Some(b"size") => Sort::Size,
        Some(b"time") => Sort::Time,
        _ => Sort::Name,
    };
    let order = if value(b"order") == Some(b"desc") {
        Order::Desc
    } else {
        Order::Asc
    };
    (sort, order)
}

/// The listing as a JSON array of `{name, type, size, modified, url}`, in the order asked for.
///
/// `size` is null for what is not a file, `modified` where it is not known, `url` where there is nothing to fetch.
pub fn json(listing: &Listing<'_>) -> Vec<u8> {
    let entries = listing.sorted();
    let mut out = Vec::with_capacity(2 + entries.len() * JSON_ENTRY_RESERVE);
    out.push(b'[');
    for (index, entry) in entries.into_iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"\n{\"name\":" } else { b",\n{\"name\":" });
        push_json(&mut out, &entry.name);
        out.extend_from_slice(match entry.kind {
            Kind::Directory => b",\"type\":\"directory\",\"size\":".as_slice(),
            Kind::File => b",\"type\":\"file\",\"size\":",
            Kind::Other => b",\"type\":\"other\",\"size\":",
        });
        match entry.kind {
            Kind::File => out.extend_from_slice(entry.size.to_string().as_bytes()),
            Kind::Directory | Kind::Other => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"modified\":");
        match entry.modified_unix {
            Some(seconds) => push_json(&mut out, &figures::Civil::from_unix(seconds).rfc3339()),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"url\":");
        if entry.kind == Kind::Other {
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
    /// The entries in the order asked for, at most [`MAX_ENTRIES`]. Directories always come first; equals by name.
    fn sorted(&self) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        entries.sort_unstable_by(|a, b| {
            let by_name = || natural::compare(&a.name, &b.name);
            let (key, then) = match self.sort {
                Sort::Name => (by_name(), Ordering::Equal),
                Sort::Size => (a.counted_size().cmp(&b.counted_size()), by_name()),
                Sort::Time => (a.modified_unix.cmp(&b.modified_unix), by_name()),
            };
            let key = if self.order == Order::Desc { key.reverse() } else { key };
            (a.kind != Kind::Directory)
                .cmp(&(b.kind != Kind::Directory))
                .then(key)
                .then(then)
        });
        entries.truncate(MAX_ENTRIES);
        entries
    }

    /// Whether the directory holds more than the answer shows.
    fn is_cut(&self) -> bool {
        self.truncated || self.entries.len() > MAX_ENTRIES
    }
}

impl Entry {
    fn counted_size(&self) -> u64 {
        if self.kind == Kind::File { self.size } else { 0 }
    }

    /// The relative URL of the entry. `./` keeps a name such as `javascript:x` from being read as a scheme, and `//x` or
    /// an absolute path from leaving the directory.
    fn push_href(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"./");
        push_segment(out, &self.name);
        if self.kind == Kind::Directory {
            out.push(b'/');
        }
    }
}

impl Sort {
    const fn word(self) -> &'static str {
        match self {
            Sort::Name => "name",
            Sort::Size => "size",
            Sort::Time => "time",
        }
    }
}

impl Order {
    const fn word(self) -> &'static str {
        match self {
            Order::Asc => "asc",
            Order::Desc => "desc",
        }
    }
}

/// A JSON entry with a name of ordinary length.
const JSON_ENTRY_RESERVE: usize = 128;

#[cfg(test)]
mod tests;
