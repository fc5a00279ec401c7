//! Names of entries, and the bounds that all parts of the cache know.

use std::sync::Arc;

use crate::entry::Entry;

/// Entries kept, so that the time to go through them (after a reload) stays short.
pub(super) const MAX_ENTRIES: usize = 64 * 1024;

/// The name of the thread that owns the cache.
pub(super) const THREAD_NAME: &str = "rn-cache";

/// What a look-up gives: the entry, or nothing when the server has too much to do.
pub type LookupResult = Option<Arc<Entry>>;

/// A tree and a path in it. The path is shared by all that know it: tables, messages, and workers.
pub type Key = (u32, Arc<str>);
