//! Responses that a worker sends again without their handler, in the form in which they were sent: with their filters
//! applied, and with their heads encoded.
//!
//! A response is kept once it was sent twice within a second. Its handler decides until when it may be sent again
//! ([`Reuse`]). After that, and at the latest after [`MAX_AGE_MS`], the handler is called again.

use std::cell::{Cell, RefCell};
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use rocknet_io::queue::SharedBytes;
use rocknet_proto::PreparedHeads;
use rocknet_proto::fields::KnownField;
use rocknet_proto::request::Request;

use crate::files::cache::l1::{CachedEndpoint, GuardList};
use crate::files::entry::{Entry, STALE_AFTER_MS};
use rocknet_handler::Reuse;
use rocknet_handler::guard::Guard;
use rocknet_handler::services::WorkerLocal;
use rocknet_handler::stored::Stored;

/// Maximum time in milliseconds for which a response is sent without a call of its handler, because the response cache
/// sees only these calls, and evicts responses that seem unused.
pub const MAX_AGE_MS: u64 = 250;

/// Maximum time in milliseconds between two requests after which their response is kept.
const FREQUENT_MS: u64 = 1_000;

/// Time in milliseconds after which a request that was not repeated is forgotten.
const FORGET_MS: u64 = 5_000;

/// Maximum number of requests that are remembered.
const MAX_SLOTS: usize = 4096;

/// Maximum size of all requests and their responses together, in bytes. A body counts unless the response cache has it,
/// too.
const MAX_BYTES: usize = 4 << 20;

/// Divisor for a fraction of the table, an eighth. If the table is full, requests are forgotten until this fraction of
/// its slots and bytes is free. One response may take at most this fraction of the bytes.
const FREED_PART: usize = 8;

/// Maximum size of a request in bytes: authority, target and `Accept-Encoding`.
const MAX_REQUEST: usize = 1024;

/// Responses of one worker.
#[derive(Default)]
pub struct ReadyResponses(RefCell<Table>);

#[derive(Default)]
struct Table {
    slots: HashTable<Slot>,
    hasher: RandomState,
    /// Size of all slots in bytes.
    bytes: usize,
    /// Uptime in milliseconds of the last sweep.
    swept_ms: u64,
}

/// Parts of a request that decide which response it gets, besides those that [`Reuse::applies_to`] examines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestKey<'r> {
    /// Number of the site, with the flag [`AFTER_RULES`](crate::files::cache::l1::AFTER_RULES) if its rules were
    /// applied.
    site: u32,
    is_secure: bool,
    authority: &'r [u8],
    target: &'r [u8],
    /// Value of `Accept-Encoding`.
    accept_encoding: Option<&'r [u8]>,
}

/// A request, and its response once the request was repeated.
struct Slot {
    site: u32,
    is_secure: bool,
    authority_length: usize,
    target_length: usize,
    accepts_encoding: bool,
    /// Authority, target and `Accept-Encoding`.
    text: Box<[u8]>,
    ready: Option<Rc<ReadyResponse>>,
    /// Uptime in milliseconds of the last request whose response the handler has made.
    seen_ms: u64,
    /// Size in bytes.
    bytes: usize,
    /// True if the response was sent since it was stored.
    is_used: bool,
}

/// A response that is ready to be sent.
pub struct ReadyResponse {
    /// Condition under which it may be sent.
    pub reuse: Box<dyn Reuse>,
    /// Uptime in milliseconds until which it is sent without a call of the handler.
    valid_until_ms: Cell<u64>,
    /// Encoded heads.
    pub heads: PreparedHeads,
    /// Body.
    pub body: SharedBytes,
    /// Outcome of the request in the response cache, for the access log.
    pub cache_status: &'static str,
    /// Route and handler.
    pub endpoint: Rc<CachedEndpoint>,
    /// Guards that have to admit each request; empty for a site without guards.
    pub guards: GuardList,
    /// Entry of the script that the path led to. The response is not sent once the entry is retired, or too old.
    script: Option<Arc<Entry>>,
    /// Size in bytes of a body that the response cache does not have.
    own_body: usize,
}

impl ReadyResponse {
    /// Creates a response that may be sent from now on. `body`: empty for a response without one. `script`: entry of
    /// the script that the path led to; `None` if no script was looked up. `own_body`: size in bytes of a body that the
    /// response cache does not have.
    pub fn new(
        reuse: Box<dyn Reuse>,
        heads: PreparedHeads,
        body: SharedBytes,
        cache_status: &'static str,
        endpoint: Rc<CachedEndpoint>,
        guards: GuardList,
        script: Option<Arc<Entry>>,
        own_body: usize,
        now_ms: u64,
    ) -> ReadyResponse {
        let ready = ReadyResponse {
            valid_until_ms: Cell::new(0),
            reuse,
            heads,
            body,
            cache_status,
            endpoint,
            guards,
            script,
            own_body,
        };
        ready.renew(now_ms);
        ready
    }

    /// Permits sending the response again after its handler was called. Returns false if it may not be sent: its time
    /// is over, the handler has another response, or the path leads to another file.
    fn renew(&self, now_ms: u64) -> bool {
        let until = self
            .script
            .as_ref()
            .map_or(u64::MAX, |script| script.checked_ms() + STALE_AFTER_MS);
        let until = until.min(self.reuse.valid_until_ms());
        self.valid_until_ms.set(until.min(now_ms + MAX_AGE_MS));
        now_ms < until && self.is_current()
    }

    /// Returns true until the handler has another response, or the path leads to another file.
    #[inline]
    fn is_current(&self) -> bool {
        self.reuse.is_current() && !self.script.as_ref().is_some_and(|script| script.is_retired())
    }

    /// Returns the approximate memory in use, in bytes.
    fn memory_size(&self) -> usize {
        size_of::<ReadyResponse>()
            + self.reuse.memory_size()
            + self.heads.memory_size()
            + size_of::<CachedEndpoint>()
            + self.endpoint.path.len()
            + self.guards.len() * size_of::<Arc<dyn Guard>>()
            + self.script.as_ref().map_or(0, |script| script.size() as usize)
            + self.own_body
    }
}

impl<'r> RequestKey<'r> {
    /// Returns the key of a request; `None` if the response to the request is never kept.
    #[inline]
    pub fn of(request: &Request<'r>, site: u32, is_secure: bool) -> Option<RequestKey<'r>> {
        if request.fields.is_repeated(KnownField::AcceptEncoding) {
            return None;
        }
        Some(RequestKey {
            site,
            is_secure,
            authority: request.authority,
            target: request.target,
            accept_encoding: request.fields.get(KnownField::AcceptEncoding),
        })
    }

    fn len(&self) -> usize {
        self.authority.len() + self.target.len() + self.accept_encoding.map_or(0, <[u8]>::len)
    }
}

impl Slot {
    #[inline]
    fn key(&self) -> RequestKey<'_> {
        let (authority, rest) = self.text.split_at(self.authority_length);
        let (target, accept_encoding) = rest.split_at(self.target_length);
        RequestKey {
            site: self.site,
            is_secure: self.is_secure,
            authority,
            target,
            accept_encoding: self.accepts_encoding.then_some(accept_encoding),
        }
    }
}

impl ReadyResponses {
    /// Returns the response to a request if it may be sent at this time. The caller checks whether it applies to the
    /// request.
    #[inline]
    pub fn get(&self, key: RequestKey<'_>, now_ms: u64) -> Option<Rc<ReadyResponse>> {
        let mut table = self.0.borrow_mut();
        let hash = table.hash(key);
        let slot = table.slots.find_mut(hash, |slot| slot.key() == key)?;
        let ready = slot.ready.as_ref()?;
        if now_ms >= ready.valid_until_ms.get() || !ready.is_current() {
            return None;
        }
        slot.is_used = true;
        Some(Rc::clone(ready))
    }

    /// Returns true if no request is known.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.borrow().slots.is_empty()
    }

    /// Notes a request whose response the handler has made from `stored`. Returns true if the response should be kept:
    /// it is not kept yet, and the request is frequent.
    pub fn note(&self, key: RequestKey<'_>, stored: &Arc<dyn Stored>, now_ms: u64) -> bool {
        if key.len() > MAX_REQUEST {
            return false;
        }
        let mut table = self.0.borrow_mut();
        let hash = table.hash(key);
        if let Some(slot) = table.slots.find_mut(hash, |slot| slot.key() == key) {
            let is_frequent = slot.is_used || now_ms.saturating_sub(slot.seen_ms) <= FREQUENT_MS;
            slot.seen_ms = now_ms;
            let is_kept = slot
                .ready
                .as_ref()
                .is_some_and(|ready| ready.reuse.is_of(stored) && ready.renew(now_ms));
            return is_frequent && !is_kept;
        }
        let bytes = slot_size(key);
        table.make_room(bytes, now_ms);
        let text = [key.authority, key.target, key.accept_encoding.unwrap_or_default()].concat();
        let slot = Slot {
            site: key.site,
            is_secure: key.is_secure,
            authority_length: key.authority.len(),
            target_length: key.target.len(),
            accepts_encoding: key.accept_encoding.is_some(),
            text: text.into(),
            ready: None,
            seen_ms: now_ms,
            bytes,
            is_used: false,
        };
        let Table { slots, hasher, .. } = &mut *table;
        slots.insert_unique(hash, slot, |slot| hash_of(hasher, slot.key()));
        table.bytes += bytes;
        false
    }

    /// Keeps the response to a request that was noted, unless it is too large.
    pub fn keep(&self, key: RequestKey<'_>, ready: ReadyResponse, now_ms: u64) {
        let size = slot_size(key) + ready.memory_size();
        if size > MAX_BYTES / FREED_PART {
            return;
        }
        let mut table = self.0.borrow_mut();
        let hash = table.hash(key);
        let Ok(entry) = table.slots.find_entry(hash, |slot| slot.key() == key) else {
            return;
        };
        // The slot is not in the table while room is made for its response, so that it is not forgotten.
        let (mut slot, _) = entry.remove();
        table.bytes -= slot.bytes;
        table.make_room(size, now_ms);
        slot.bytes = size;
        slot.ready = Some(Rc::new(ready));
        slot.is_used = false;
        let Table {
            slots, hasher, bytes, ..
        } = &mut *table;
        slots.insert_unique(hash, slot, |slot| hash_of(hasher, slot.key()));
        *bytes += size;
    }

    /// Forgets all requests, and frees the memory.
    pub fn clear(&self) {
        *self.0.borrow_mut() = Table::default();
    }
}

impl Table {
    #[inline]
    fn hash(&self, key: RequestKey<'_>) -> u64 {
        hash_of(&self.hasher, key)
    }

    /// Makes room for a request if the table is full: forgets first those that were not repeated lately, then those
    /// whose response was not sent again, then half of the rest until there is room. So much is freed at once that few
    /// requests need this work.
    fn make_room(&mut self, bytes: usize, now_ms: u64) {
        if self.slots.len() < MAX_SLOTS && self.bytes + bytes <= MAX_BYTES {
            return;
        }
        let is_full = |table: &Table| {
            let (slots, size) = (table.slots.len(), table.bytes + bytes);
            slots > MAX_SLOTS - MAX_SLOTS / FREED_PART || size > MAX_BYTES - MAX_BYTES / FREED_PART
        };
        self.retain(|slot| slot.ready.is_some() && now_ms.saturating_sub(slot.seen_ms) < FORGET_MS);
        if is_full(self) {
            self.retain(|slot| slot.is_used);
        }
        while is_full(self) {
            let mut is_dropped = false;
            self.retain(|_| {
                is_dropped = !is_dropped;
                !is_dropped
            });
        }
    }

    /// Forgets requests that were not repeated lately, and drops responses that may not be sent any more.
    fn sweep(&mut self, now_ms: u64) {
        self.swept_ms = now_ms;
        self.retain(|slot| {
            if slot.ready.as_ref().is_some_and(|ready| !ready.is_current()) {
                slot.ready = None;
            }
            now_ms.saturating_sub(slot.seen_ms) < FORGET_MS
        });
    }

    fn retain(&mut self, mut keep: impl FnMut(&mut Slot) -> bool) {
        let mut bytes = 0;
        self.slots.retain(|slot| {
            let keep = keep(slot);
            bytes += if keep { slot.bytes } else { 0 };
            keep
        });
        self.bytes = bytes;
        if self.slots.is_empty() {
            self.slots = HashTable::new();
        }
    }
}

/// Returns the size of a request without its response, in bytes. The slot counts twice, because after it has grown, the
/// table is about half empty.
fn slot_size(key: RequestKey<'_>) -> usize {
    2 * size_of::<Slot>() + key.len()
}

/// Returns the hash of a request. It covers all parts that clients choose. Many requests with the same hash cost time,
/// and the random state makes them hard to find.
#[inline]
fn hash_of(hasher: &RandomState, key: RequestKey<'_>) -> u64 {
    hasher.hash_one((key.site, key.authority, key.target, key.accept_encoding))
}

impl WorkerLocal for ReadyResponses {
    fn tick(&self, now_ms: u64) {
        let mut table = self.0.borrow_mut();
        // A sweep at this interval is enough, because it is short against `FORGET_MS`.
        if now_ms.saturating_sub(table.swept_ms) >= FREQUENT_MS && !table.slots.is_empty() {
            table.sweep(now_ms);
        }
    }

    fn release(&self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests;
