//! Properties of responses that may be stored, or the reason why a response is not stored.

use std::sync::Arc;

use rocknet_handler::response::{Body, Response};
use rocknet_proto::request::Request;

use crate::cached_route::CachedRoute;
use crate::policy::{self, NotStored, RequestFacts, Times};
use crate::stored::{Storable, StoredResponse};
use crate::vary::Variation;
use crate::{key, litespeed, tags};

/// Returns the properties of a response of the handler. It must still have the fields for this server, which
/// [`CachedRoute::finish`] removes. `changes`: number of purges and invalidations when it was requested.
pub(crate) fn properties(
    cached: &CachedRoute,
    facts: &RequestFacts,
    response: &Response,
    times: Times,
    request: &Request<'_>,
    is_secure: bool,
    changes: u64,
) -> Result<Storable, NotStored> {
    let terms = policy::terms(facts, response.status, &response.fields, times, &cached.settings)?;
    if cached.memory.capacity() == 0 {
        return Err(NotStored::NoMemory);
    }
    // A stream of events has no end.
    let is_endless = |value: &str| value.trim_start().to_ascii_lowercase().starts_with("text/event-stream");
    if response.fields.value("Content-Type").is_some_and(is_endless) {
        return Err(NotStored::Body);
    }
    let max = cached.settings.max_object;
    let has_storable_body = match &response.body {
        Body::Empty => true,
        Body::Bytes(bytes) => bytes.len() as u64 <= max,
        Body::Stream(stream) => stream.length().is_none_or(|length| length <= max),
        Body::File(_) | Body::Parts(_) | Body::Tunnel(_) | Body::Abort => false,
    };
    if !has_storable_body {
        return Err(NotStored::Body);
    }
    let (cookies, server_fields) = match cached.settings.litespeed {
        true => (
            litespeed::vary_cookies(&response.fields),
            litespeed::split_off(&mut response.fields.clone()),
        ),
        false => Default::default(),
    };
    let variation =
        Variation::of(&response.fields, &request.fields, &cookies, &cached.replaced).ok_or(NotStored::Vary)?;
    Ok(Storable {
        terms,
        variation,
        tags: tags::of_response(&response.fields),
        server_fields,
        url: cached.key.as_ref().map(|_| key::url_of(request, is_secure)),
        changes,
    })
}

/// Returns a stale response with the fields and the new terms of a 304 that has confirmed it (RFC 9111 §4.3.4).
/// `changes`: number of purges and invalidations when the 304 was requested.
pub(crate) fn confirm(
    cached: &CachedRoute,
    facts: &RequestFacts,
    stale: &StoredResponse,
    confirmed: &Response,
    times: Times,
    changes: u64,
) -> Result<Arc<StoredResponse>, NotStored> {
    let fields = stale.updated_fields(&confirmed.fields);
    let terms = policy::terms(facts, stale.status, &fields, times, &cached.settings)?;
    let validated = stale.validated(fields, terms, cached.settings.litespeed);
    Ok(Arc::new(StoredResponse { changes, ..validated }))
}
