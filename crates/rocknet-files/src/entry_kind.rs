//! Kinds of cache entries, with the maximum memory and path length of each kind. Clients choose the paths of some kinds
//! freely, so these kinds have lower limits.

use crate::entry::{Entry, Found};
use crate::script::Script;

/// Relation of a path to the file or error that was found for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// The file or folder that the path names.
    Named,
    /// A file that is served for any path: a `fallback`, or a script after which the path continues.
    Fallback,
    /// An error: no file has the path, or the file must not be sent.
    Missing,
}

/// Divisor of `cache.memory` for fallbacks and for missing paths, because clients choose their paths. Each of the two
/// kinds has its own limit, so that it cannot evict files. The share is large, because the pages of many applications
/// are fallbacks.
const SHARE: u64 = 4;
/// Maximum size of all missing paths in bytes, enough for about 1,000 paths. Only missing paths that are requested
/// repeatedly (`/favicon.ico`) are worth caching.
const MAX_MISSING_BYTES: u64 = 4 << 20;
/// Maximum length of a fallback's path in bytes, the same as in the cache of a worker (`cache/l1.rs`).
const MAX_FALLBACK_PATH: usize = 512;
/// Maximum length of a missing path in bytes. The missing paths that browsers and robots request on every site are
/// shorter.
const MAX_MISSING_PATH: usize = 256;

impl EntryKind {
    /// Returns the maximum size in bytes of all entries of this kind, if the entries of all kinds are limited to
    /// `memory` bytes.
    pub(super) fn limit(self, memory: u64) -> u64 {
        match self {
            EntryKind::Named => memory,
            EntryKind::Fallback => memory / SHARE,
            EntryKind::Missing => (memory / SHARE).min(MAX_MISSING_BYTES),
        }
    }

    /// Returns true if an entry of this kind is cached under a path of `length` bytes. Entries under longer paths are
    /// looked up for each request.
    pub fn caches_path_of(self, length: usize) -> bool {
        match self {
            EntryKind::Named => true,
            EntryKind::Fallback => length <= MAX_FALLBACK_PATH,
            EntryKind::Missing => length <= MAX_MISSING_PATH,
        }
    }
}

impl Entry {
    /// Returns the kind of the entry.
    pub fn kind(&self) -> EntryKind {
        match &self.found {
            Found::Failed(_) => EntryKind::Missing,
            Found::Asset(asset) if asset.status.code() >= 400 => EntryKind::Missing,
            _ if self.is_fallback => EntryKind::Fallback,
            _ => EntryKind::Named,
        }
    }
}

/// Returns true if a file is a fallback for `path`. `file`: path of the file in the site, without its leading slash. A
/// fallback is neither the file that `path` names, nor the index file of the folder that `path` names, nor the file
/// whose name is `path` with an extension. Only the beginning of `file` is compared, so `about-us.html` is not a
/// fallback for `/about` either.
pub fn is_fallback(file: &[u8], path: &str) -> bool {
    !file.starts_with(path.trim_matches('/').as_bytes())
}

/// Like [`is_fallback`], for a script.
pub fn is_fallback_script(script: &Script, path: &str) -> bool {
    is_fallback(script.name.trim_start_matches('/').as_bytes(), path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_served_for_any_path_are_fallbacks() {
        for (relative, path, expected) in [
            ("a.txt", "/a.txt", false),
            ("a/index.html", "/a/", false),
            ("index.html", "/", false),
            ("about.html", "/about", false),
            ("about.html", "/about/", false),
            ("index.html", "/about", true),
            ("index.php", "/index.php/more", true),
            ("app/index.html", "/app/users/1", true),
        ] {
            assert_eq!(
                is_fallback(relative.as_bytes(), path),
                expected,
                "{relative} for {path}"
            );
        }
    }

    #[test]
    fn kinds_have_limits_of_memory_and_path_length() {
        const MEMORY: u64 = 256 << 20;
        for (kind, limit, length) in [
            (EntryKind::Named, MEMORY, usize::MAX),
            (EntryKind::Fallback, MEMORY / 4, MAX_FALLBACK_PATH),
            (EntryKind::Missing, 4 << 20, MAX_MISSING_PATH),
        ] {
            assert_eq!(kind.limit(MEMORY), limit, "{kind:?}");
            assert!(kind.caches_path_of(length), "{kind:?}");
            assert!(kind == EntryKind::Named || !kind.caches_path_of(length + 1), "{kind:?}");
        }
        assert_eq!(EntryKind::Missing.limit(1 << 20), 1 << 18);
    }
}
