//! Entries of the file cache: the result of looking up a path, with the time of the lookup.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use rocknet_proto::semantics::etag::FileTag;
use rocknet_proto::semantics::negotiation::Coding;
use rocknet_proto::status::Status;

use crate::script::Script;
use rocknet_handler::open_file::OpenFile;
use rocknet_handler::response::{FieldList, Text};
use rocknet_proto::PreparedHeads;

/// Age from which a use of an entry starts its revalidation in the background, in milliseconds. Younger entries are
/// used without a check.
pub const REFRESH_AFTER_MS: u64 = 400;
/// Age from which a response waits for the revalidation, in milliseconds. With this age and the clock's tick, a change
/// on disk is visible within a second.
pub const STALE_AFTER_MS: u64 = 700;

/// Codings in which an asset may be cached, the preferred one first.
pub const PREFERRED_CODINGS: [Coding; 3] = [Coding::Br, Coding::Zstd, Coding::Gzip];

/// Result of looking up a path, shared by all workers. The result itself does not change, except that encoded variants
/// are added.
pub struct Entry {
    /// Result of the lookup.
    pub found: Found,
    /// Identity of the files, to determine whether a later lookup finds the same files.
    pub identity: Vec<FileIdentity>,
    /// True if the path does not name the file: the file is a fallback, or a script after which the path continues
    /// (`/index.php/about`).
    pub is_fallback: bool,
    /// Path of the file, if it differs from the path of the request. This is the case for an index file, a script after
    /// which the path continues, and the target of `try` or `fallback`.
    pub file: Option<Box<str>>,
    /// Time of the last check on disk, in milliseconds of uptime. The time has 64 bits, because an entry can remain
    /// unused for months.
    checked_ms: AtomicU64,
    /// Time of the last use, in milliseconds of uptime.
    used_ms: AtomicU64,
    /// Set when a newer lookup has a different result, and when the entry is replaced, evicted or not cached at all.
    retired: AtomicBool,
    /// The stored entry that is used instead: an equal one that was inserted earlier, or one that was checked later.
    replacement: OnceLock<Weak<Entry>>,
    /// Set while a revalidation is in progress.
    pub revalidating: AtomicBool,
}

/// Properties of a file that are compared to detect that it was replaced or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// Number of the device.
    pub device: u64,
    /// Number of the inode.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Modification time in nanoseconds since 1970.
    pub modified_ns: i128,
}

/// Result of a lookup.
pub enum Found {
    /// A file or page to be sent.
    Asset(Box<Asset>),
    /// A directory requested without its trailing slash.
    WithoutSlash,
    /// A directory to be listed, with its path below the root of the tree.
    Directory { relative: Vec<u8> },
    /// A script, which PHP runs for each request.
    Script(Arc<Script>),
    /// No file that can be sent. The response is the route's error page.
    Failed(Status),
}

/// A file or page to be sent, prepared in each variant that a client may request.
pub struct Asset {
    /// 200, or the status of an error page.
    pub status: Status,
    /// Fields that all variants share.
    pub fields: FieldList,
    pub content_type: Text,
    /// Modification time in seconds since 1970. `None` for error pages.
    pub last_modified: Option<u64>,
    /// Modification time in nanoseconds since 1970, for the entity tags of variants that are added later.
    pub modified_ns: u64,
    pub plain: Variant,
    /// Variant of each coding: precompressed on disk, or encoded at the first request. An unset cell means that the
    /// variant was not encoded yet; `None` in a cell means that the encoded content is not shorter.
    encoded: [OnceLock<Option<Box<Variant>>>; PREFERRED_CODINGS.len()],
    /// True if encoded variants may be offered.
    pub negotiates: bool,
    /// True if at least one encoded variant is a precompressed file on disk.
    pub has_precompressed: bool,
}

/// One variant of an asset.
pub struct Variant {
    pub coding: Coding,
    /// Entity tag; `None` for an error page, which has no validators.
    pub etag: Option<FileTag>,
    /// Head of the response with the whole content.
    pub full: PreparedHeads,
    /// Head of the 304 response; `None` without validators.
    pub not_modified: Option<PreparedHeads>,
    pub content: Content,
}

/// Content of a variant.
#[derive(Clone)]
pub enum Content {
    /// Bytes in memory.
    Memory(Bytes),
    /// An open file, sent without copying.
    File(Arc<OpenFile>),
}

impl Entry {
    /// Creates an entry for the result of a lookup at `now_ms` of uptime.
    pub fn new(found: Found, identity: Vec<FileIdentity>, now_ms: u64) -> Entry {
        Entry {
            found,
            identity,
            is_fallback: false,
            file: None,
            checked_ms: AtomicU64::new(now_ms),
            used_ms: AtomicU64::new(now_ms),
            retired: AtomicBool::new(false),
            replacement: OnceLock::new(),
            revalidating: AtomicBool::new(false),
        }
    }

    /// Returns the time since the last check on disk in milliseconds; 0 if the worker's clock lags behind the check.
    /// `now_ms` is the uptime.
    #[inline]
    pub fn age_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.checked_ms.load(Ordering::Relaxed))
    }

    /// Returns the time of the last check, in milliseconds of uptime.
    pub fn checked_ms(&self) -> u64 {
        self.checked_ms.load(Ordering::Relaxed)
    }

    /// Records that a check at this time had the same result, and ends the revalidation.
    pub fn mark_checked(&self, then_ms: u64) {
        self.checked_ms.fetch_max(then_ms, Ordering::Relaxed);
        self.revalidating.store(false, Ordering::Release);
    }

    /// Records a use. Skips the write if this time is recorded already, because a write slows down the other workers.
    #[inline]
    pub fn touch(&self, now_ms: u64) {
        if self.used_ms.load(Ordering::Relaxed) != now_ms {
            self.used_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    /// Returns the time of the last use, in milliseconds of uptime.
    pub fn used_ms(&self) -> u64 {
        self.used_ms.load(Ordering::Relaxed)
    }

    /// Returns true if the entry must not be used any more.
    #[inline]
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Marks the entry as not to be used any more.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    /// Retires the entry in favour of an equal or newer one, so that all workers use one entry with its encoded
    /// variants.
    pub fn replace_with(&self, other: &Arc<Entry>) {
        let _ = self.replacement.set(Arc::downgrade(other));
        self.retire();
    }

    /// Returns the replacement of a retired entry; `None` if it has none, or if the replacement is retired too.
    pub fn replacement(&self) -> Option<Arc<Entry>> {
        self.replacement.get()?.upgrade().filter(|entry| !entry.is_retired())
    }

    /// Returns true if two lookups had the same result.
    pub fn is_same(&self, other: &Entry) -> bool {
        if self.file != other.file {
            return false;
        }
        match (&self.found, &other.found) {
            (Found::Asset(one), Found::Asset(two)) => one.status == two.status && self.identity == other.identity,
            (Found::WithoutSlash, Found::WithoutSlash) => true,
            (Found::Directory { relative: one }, Found::Directory { relative: two }) => one == two,
            (Found::Script(one), Found::Script(two)) => one == two,
            (Found::Failed(one), Found::Failed(two)) => one == two,
            _ => false,
        }
    }

    /// Returns true if encoded variants that are worth sharing may be added to the entry, or if it has open descriptors
    /// that must be counted. A worker that has loaded such an entry queries the shared cache before it uses the entry.
    pub fn needs_sharing(&self) -> bool {
        self.descriptors() > 0 || matches!(&self.found, Found::Asset(asset) if asset.negotiates)
    }

    /// Returns the number of open descriptors.
    pub fn descriptors(&self) -> u64 {
        match &self.found {
            Found::Asset(asset) => asset
                .variants()
                .filter(|variant| matches!(variant.content, Content::File(_)))
                .count() as u64,
            Found::WithoutSlash | Found::Directory { .. } | Found::Script(_) | Found::Failed(_) => 0,
        }
    }

    /// Returns the memory in bytes: content, heads, and overhead.
    pub fn size(&self) -> u64 {
        // Reference counts, and rounding by the allocator. An asset uses about ten allocations.
        const OVERHEAD: u64 = 256;
        let found = match &self.found {
            Found::Asset(asset) => asset.size(),
            Found::Directory { relative } => relative.len() as u64,
            Found::Script(script) => script.size() as u64,
            Found::WithoutSlash | Found::Failed(_) => 0,
        };
        let identity = self.identity.capacity() * size_of::<FileIdentity>();
        let file = self.file.as_ref().map_or(0, |file| file.len());
        OVERHEAD + size_of::<Entry>() as u64 + identity as u64 + file as u64 + found
    }
}

impl Asset {
    /// Creates an asset with its plain variant only.
    pub fn new(status: Status, fields: FieldList, content_type: impl Into<Text>, plain: Variant) -> Asset {
        Asset {
            status,
            fields,
            content_type: content_type.into(),
            last_modified: None,
            modified_ns: 0,
            plain,
            encoded: Default::default(),
            negotiates: false,
            has_precompressed: false,
        }
    }

    /// Returns the variant with `coding`. Returns `None` if it was not encoded yet, or for identity. Returns
    /// `Some(None)` if encoding does not make the content shorter.
    #[inline]
    pub fn encoded(&self, coding: Coding) -> Option<Option<&Variant>> {
        let index = PREFERRED_CODINGS.iter().position(|preferred| *preferred == coding)?;
        self.encoded[index].get().map(Option::as_deref)
    }

    /// Sets the variant with `coding`. Returns false if another worker has already set it, or for identity.
    pub fn set_encoded(&self, coding: Coding, variant: Option<Box<Variant>>) -> bool {
        let index = PREFERRED_CODINGS.iter().position(|preferred| *preferred == coding);
        index.is_some_and(|index| self.encoded[index].set(variant).is_ok())
    }

    /// Returns the entity tag that a variant has, or would have once it is encoded; `None` for content without
    /// validators.
    pub fn tag(&self, coding: Coding) -> Option<FileTag> {
        self.plain
            .etag
            .as_ref()
            .map(|_| FileTag::new(self.modified_ns, self.plain.content.length(), coding))
    }

    fn size(&self) -> u64 {
        let variants: u64 = self.variants().map(Variant::size).sum();
        size_of::<Asset>() as u64 + self.fields.memory_size() as u64 + variants
    }

    fn variants(&self) -> impl Iterator<Item = &Variant> {
        let encoded = self.encoded.iter().filter_map(|variant| variant.get()?.as_deref());
        std::iter::once(&self.plain).chain(encoded)
    }
}

impl Variant {
    /// Returns the memory in bytes.
    pub fn size(&self) -> u64 {
        let content = match &self.content {
            Content::Memory(bytes) => bytes.len(),
            Content::File(_) => 0,
        };
        let heads = self.full.memory_size() + self.not_modified.as_ref().map_or(0, PreparedHeads::memory_size);
        (size_of::<Variant>() + content + heads) as u64
    }
}

impl Content {
    /// Returns the length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Content::Memory(bytes) => bytes.len() as u64,
            Content::File(file) => file.length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_correct_after_months_and_with_a_lagging_clock() {
        const DAY: u64 = 24 * 60 * 60 * 1000;
        for (checked, now, expected) in [
            (0, 0, 0),
            (1000, 1400, 400),
            // The clock of the worker lags.
            (1000, 900, 0),
            (0, 30 * DAY, 30 * DAY),
            (DAY, 400 * DAY, 399 * DAY),
        ] {
            let entry = Entry::new(Found::WithoutSlash, Vec::new(), 0);
            entry.mark_checked(checked);
            assert_eq!(entry.age_ms(now), expected, "checked at {checked}, now {now}");
        }
    }
}
