//! One cached answer: what a path of a tree led to, when that was looked up, and whether it still holds.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use rocknet_proto::semantics::etag::FileTag;
use rocknet_proto::semantics::negotiation::Coding;
use rocknet_proto::status::Status;

use crate::script::Script;
use rocknet_handler::open_file::OpenFile;
use rocknet_handler::response::FieldList;
use rocknet_proto::PreparedHeads;

/// Young entries are used without a question; from this age on a new look is asked for in the background.
pub const REFRESH_AFTER_MS: u64 = 400;
/// From this age on the answer waits for the new look: with the clock's tick on top, a change on disk shows within a second.
pub const STALE_AFTER_MS: u64 = 700;

/// The codings an asset may be kept in, the one we like best first.
pub const PREFERRED_CODINGS: [Coding; 3] = [Coding::Br, Coding::Zstd, Coding::Gzip];

/// What a path led to. Shared by all workers, changed by none.
pub struct Entry {
    pub found: Found,
    /// Tells whether a later look found the same.
    pub identity: Vec<FileIdentity>,
    /// The path names something else: a fallback answers it, or a script that the path continues after.
    pub is_fallback: bool,
    /// Path of what was found, if it is not the path of the request: that of an index file, of a script that more path follows,
    /// or where `try` or `fallback` leads.
    pub file: Option<Box<str>>,
    /// When somebody last looked at the disk, in milliseconds of uptime: all 64 bits, because a page may lie here for
    /// months before it is asked for again.
    checked_ms: AtomicU64,
    /// When it was last used, likewise.
    used_ms: AtomicU64,
    /// Set when a newer look found something else, or when the entry was evicted.
    retired: AtomicBool,
    /// The same, found by another worker first.
    replacement: OnceLock<Weak<Entry>>,
    /// Set while somebody takes a new look.
    pub revalidating: AtomicBool,
}

/// Enough to tell that a file is the same, unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    pub modified_ns: i128,
}

pub enum Found {
    Asset(Box<Asset>),
    /// A directory asked for without its slash.
    WithoutSlash,
    /// A directory to be listed.
    Directory {
        relative: Vec<u8>,
    },
    /// A script, whose answer is made anew for each request.
    Script(Arc<Script>),
    /// Nothing that can be shown; the error page of the route is the answer.
    Failed(Status),
}

/// Something to send, prepared in every form it may be asked for.
pub struct Asset {
    /// 200, or the status it is the error page of.
    pub status: Status,
    /// The fields that all its forms share.
    pub fields: FieldList,
    pub content_type: &'static str,
    /// Seconds since 1970; none for what has no file behind it.
    pub last_modified: Option<u64>,
    /// For the tags of forms made later.
    pub modified_ns: u64,
    pub plain: Variant,
    /// By coding: a neighbour on disk, or made when first asked for. `None` inside: not worth it.
    encoded: [OnceLock<Option<Box<Variant>>>; PREFERRED_CODINGS.len()],
    /// Whether forms with a coding may be offered at all.
    pub negotiates: bool,
    /// Whether some of those were found on disk.
    pub has_precompressed: bool,
}

/// One form of an asset.
pub struct Variant {
    pub coding: Coding,
    pub etag: Option<FileTag>,
    pub full: PreparedHeads,
    /// 304, where there are validators.
    pub not_modified: Option<PreparedHeads>,
    pub content: Content,
}

#[derive(Clone)]
pub enum Content {
    Memory(Bytes),
    File(Arc<OpenFile>),
}

impl Entry {
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

    /// How old the last look at the disk is. A worker's clock lags: it may not have seen the moment of the look yet.
    #[inline]
    pub fn age_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.checked_ms.load(Ordering::Relaxed))
    }

    /// When somebody last looked.
    pub fn checked_ms(&self) -> u64 {
        self.checked_ms.load(Ordering::Relaxed)
    }

    /// A look that was taken then has found the same.
    pub fn mark_checked(&self, then_ms: u64) {
        self.checked_ms.fetch_max(then_ms, Ordering::Relaxed);
        self.revalidating.store(false, Ordering::Release);
    }

    /// Notes that it was used; writes to shared memory once a tick at most.
    #[inline]
    pub fn touch(&self, now_ms: u64) {
        if self.used_ms.load(Ordering::Relaxed) != now_ms {
            self.used_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    pub fn used_ms(&self) -> u64 {
        self.used_ms.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    pub fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    /// Another that is the same is to be used: one is kept for all workers, with the forms that were made of it.
    pub fn replace_with(&self, other: &Arc<Entry>) {
        let _ = self.replacement.set(Arc::downgrade(other));
        self.retire();
    }

    /// What is to be used instead of one that is gone.
    pub fn replacement(&self) -> Option<Arc<Entry>> {
        self.replacement.get()?.upgrade().filter(|entry| !entry.is_retired())
    }

    /// Whether two looks have found the same.
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

    /// Whether forms of it may be made that are worth sharing, or descriptors are held that are to be counted: then a worker
    /// asks before it uses what it has found.
    pub fn needs_sharing(&self) -> bool {
        self.descriptors() > 0 || matches!(&self.found, Found::Asset(asset) if asset.negotiates)
    }

    /// Descriptors it holds open.
    pub fn descriptors(&self) -> u64 {
        match &self.found {
            Found::Asset(asset) => asset
                .variants()
                .filter(|form| matches!(form.content, Content::File(_)))
                .count() as u64,
            Found::WithoutSlash | Found::Directory { .. } | Found::Script(_) | Found::Failed(_) => 0,
        }
    }

    /// Memory it takes: content, heads, and what holds them together.
    pub fn size(&self) -> u64 {
        // Counts of references, and what the allocator rounds up: an asset is about ten blocks.
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
    pub fn new(status: Status, fields: FieldList, content_type: &'static str, plain: Variant) -> Asset {
        Asset {
            status,
            fields,
            content_type,
            last_modified: None,
            modified_ns: 0,
            plain,
            encoded: Default::default(),
            negotiates: false,
            has_precompressed: false,
        }
    }

    /// The form with `coding`: `None` if nobody has tried to make it yet.
    #[inline]
    pub fn encoded(&self, coding: Coding) -> Option<Option<&Variant>> {
        let place = PREFERRED_CODINGS.iter().position(|known| *known == coding)?;
        self.encoded[place].get().map(Option::as_deref)
    }

    /// Keeps the form with `coding`; false if another was quicker.
    pub fn set_encoded(&self, coding: Coding, variant: Option<Box<Variant>>) -> bool {
        let place = PREFERRED_CODINGS.iter().position(|known| *known == coding);
        place.is_some_and(|place| self.encoded[place].set(variant).is_ok())
    }

    /// The tag that a form has or would have; none for what cannot be validated.
    pub fn tag(&self, coding: Coding) -> Option<FileTag> {
        self.plain
            .etag
            .as_ref()
            .map(|_| FileTag::new(self.modified_ns, self.plain.content.length(), coding))
    }

    fn size(&self) -> u64 {
        let forms: u64 = self.variants().map(Variant::size).sum();
        size_of::<Asset>() as u64 + self.fields.size() as u64 + forms
    }

    fn variants(&self) -> impl Iterator<Item = &Variant> {
        let encoded = self.encoded.iter().filter_map(|form| form.get()?.as_deref());
        std::iter::once(&self.plain).chain(encoded)
    }
}

impl Variant {
    pub fn size(&self) -> u64 {
        let content = match &self.content {
            Content::Memory(bytes) => bytes.len(),
            Content::File(_) => 0,
        };
        let heads = self.full.size() + self.not_modified.as_ref().map_or(0, PreparedHeads::size);
        (size_of::<Variant>() + content + heads) as u64
    }
}

impl Content {
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
    fn age_is_told_after_any_time() {
        const DAY: u64 = 24 * 60 * 60 * 1000;
        for (looked, now, expected) in [
            (0, 0, 0),
            (1000, 1400, 400),
            // The clock of the worker that asks lags.
            (1000, 900, 0),
            (0, 30 * DAY, 30 * DAY),
            (DAY, 400 * DAY, 399 * DAY),
        ] {
            let entry = Entry::new(Found::WithoutSlash, Vec::new(), 0);
            entry.mark_checked(looked);
            assert_eq!(entry.age_ms(now), expected, "looked at {looked}, asked at {now}");
        }
    }
}
