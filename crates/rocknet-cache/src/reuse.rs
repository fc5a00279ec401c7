//! Reuse of a stored response by a worker without a lookup.
//!
//! A worker keeps the response to frequent requests as it was sent. This file decides for which requests it may be sent
//! again: those for which [`CacheHandler`](crate::CacheHandler) would look up and send the same stored response, whole.

use std::sync::Arc;

use rocknet_handler::services::Services;
use rocknet_handler::stored::Stored;
use rocknet_handler::{ExchangeRef, Reuse};
use rocknet_proto::fields::{KnownField as Name, KnownFieldSet};

use crate::cached_route::CachedRoute;
use crate::counters::Counted;
use crate::key::{self, Key};
use crate::plan::Plan;
use crate::policy::Use;
use crate::store::Resource;
use crate::stored::StoredResponse;

/// Fields of requests that need a lookup: they select a part or another response, or state a condition.
const NEED_LOOKUP: KnownFieldSet = KnownFieldSet::of(&[
    Name::Authorization,
    Name::CacheControl,
    Name::Forwarded,
    Name::IfMatch,
    Name::IfModifiedSince,
    Name::IfNoneMatch,
    Name::IfRange,
    Name::IfUnmodifiedSince,
    Name::Pragma,
    Name::Range,
]);

/// A fresh stored response that a worker has sent.
struct StoredReuse {
    cached: Arc<CachedRoute>,
    resource: Arc<Resource>,
    stored: Arc<StoredResponse>,
    /// Fields of the request that are a part of the key besides scheme, authority and target.
    overrides: Key,
    valid_until_ms: u64,
}

impl CachedRoute {
    /// Returns the condition under which the response to a request is sent again; `None` if each request needs a
    /// lookup. `sent`: the stored response that was sent.
    pub fn reuse(
        self: &Arc<CachedRoute>,
        exchange: &ExchangeRef<'_>,
        sent: &Arc<dyn Stored>,
    ) -> Option<Box<dyn Reuse>> {
        let request = exchange.request;
        // With a template, other parts of the request than its target select a response.
        let is_simple = self.may_answer(exchange) && self.key.is_none();
        if !is_simple || request.fields.contains_any(NEED_LOOKUP) || key::is_rewritten(request) {
            return None;
        }
        let Plan::Lookup(key) = self.plan(exchange) else {
            return None;
        };
        let resource = self.memory.get(&key)?;
        let stored = Arc::clone(resource.select(&request.fields)?);
        let now_ms = exchange.services.clock.uptime_ms();
        // Another response may have been stored meanwhile.
        if !std::ptr::addr_eq(Arc::as_ptr(&stored), Arc::as_ptr(sent)) {
            return None;
        }
        // An error may get the error page of the route, and is logged.
        if stored.status.is_error() || stored.terms.permitted(now_ms, None) != Use::Fresh {
            return None;
        }
        let mut overrides = Key::new();
        key::append_overrides(&mut overrides, request);
        Some(Box::new(StoredReuse {
            overrides,
            valid_until_ms: stored.terms.unchanged_until_ms(now_ms),
            cached: Arc::clone(self),
            resource,
            stored,
        }))
    }
}

impl Reuse for StoredReuse {
    fn is_current(&self) -> bool {
        !self.resource.is_retired()
    }

    fn valid_until_ms(&self) -> u64 {
        self.valid_until_ms
    }

    fn applies_to(&self, exchange: &ExchangeRef<'_>) -> bool {
        let fields = &exchange.request.fields;
        let is_selected = || {
            let selected = self.resource.select(fields);
            selected.is_some_and(|selected| Arc::ptr_eq(selected, &self.stored))
        };
        !fields.contains_any(NEED_LOOKUP)
            && key::has_overrides(&self.overrides, exchange.request)
            && !self.cached.is_bypassed(exchange)
            && is_selected()
    }

    fn is_of(&self, stored: &Arc<dyn Stored>) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.stored), Arc::as_ptr(stored))
    }

    fn memory_size(&self) -> usize {
        let overrides = if self.overrides.spilled() {
            self.overrides.capacity()
        } else {
            0
        };
        size_of::<StoredReuse>() + overrides
    }

    fn count(&self, services: &Services) {
        self.cached.counters.count(services, Counted::Hit);
    }
}
