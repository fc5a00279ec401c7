//! Keys of entries, and limits and names that several parts of the cache use.

use std::sync::Arc;

use crate::entry::Entry;

/// Maximum number of entries, because a reload iterates over all entries.
pub(super) const MAX_ENTRIES: usize = 64 * 1024;

/// Name of the cache thread.
pub(super) const THREAD_NAME: &str = "rn-cache";

/// Result of a lookup: the entry, or `None` if the server is overloaded.
pub type LookupResult = Option<Arc<Entry>>;

/// Number of a tree, and a path in the tree. Tables, messages and workers share one copy of the path.
pub type Key = (u32, Arc<str>);
