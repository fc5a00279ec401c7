//! Lookup of a response that is on disk, but not in memory.

use std::sync::Arc;
use std::time::Duration;

use rocknet_handler::services::Services;
use rocknet_proto::request::Request;

use crate::cached_route::CachedRoute;
use crate::disk::{self, DiskStore};
use crate::fill::{FILL_SHARE, Reserved};
use crate::key::Key;
use crate::plan::Found;
use crate::policy::NotStored;
use crate::stored::StoredResponse;

/// Maximum time for reading a response. After it, the request is forwarded.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// Looks a response up on disk, and copies it to memory. `is_current` returns false if the resource was changed after
/// the lookup began, for example by a purge. Returns `None` if the disk has no response to the request, if the disk is
/// busy, or if the resource was changed.
pub(crate) async fn look_up(
    cached: &CachedRoute,
    key: &Key,
    request: &Request<'_>,
    services: &Services,
    is_current: impl Fn() -> bool,
) -> Option<Found> {
    let disk = cached.disk()?;
    let (stored, _reserved) = read(&disk, cached, key, request, services).await?;
    let stored = match cached.memory.put_older(key, &stored, &request.fields, &is_current) {
        Err(NotStored::Purged) => return None,
        // Another request has stored a newer response during the read.
        Ok(Some(newer)) => newer,
        // A response that has no room in memory is sent all the same.
        Ok(None) | Err(_) => stored,
    };
    // `put_older` does not call `is_current` if the memory store has the size 0. If the route has a template for keys,
    // `is_changed` recognizes a change of the URL.
    if !is_current() || cached.is_changed(&stored) {
        return None;
    }
    disk.count_hit();
    Some(cached.judge(stored, request, services))
}

/// Reads the response that the request selects, within [`MAX_WAIT`]. Memory for the response is reserved until the
/// second value is dropped.
async fn read(
    disk: &DiskStore,
    cached: &CachedRoute,
    key: &Key,
    request: &Request<'_>,
    services: &Services,
) -> Option<(Arc<StoredResponse>, Reserved)> {
    let now = disk::moment(services);
    // All changes of resources are numbered. The response gets the number of the last change before the read, so that
    // `CachedRoute::is_changed` recognizes a later change of its URL by a larger number.
    let last_change = cached.responses.changes();
    let job = disk.start_read(key, &request.fields, now, last_change, |size| reserve(cached, size))?;
    let deadline = services.wheel.deadline();
    deadline.set(services.wheel.ticks(MAX_WAIT));
    let Some(Ok(found)) = deadline.within(job).await else {
        disk.count_busy();
        return None;
    };
    // The disk selects responses by a hash of the request fields in `Vary`. Different fields can have the same hash, so
    // the fields themselves are compared here.
    found.filter(|(stored, _)| stored.variation.matches(&request.fields))
}

/// Reserves memory for a response; `None` if too little is left. `size`: size of the response in bytes.
fn reserve(cached: &CachedRoute, size: u64) -> Option<Reserved> {
    // One budget counts the bodies of all sites. If the small store of one site set the limit, bodies of other sites
    // alone could exceed it, and this site could not read. The limit is therefore at least that of the common store.
    let store_size = cached.memory.capacity().max(cached.responses.memory.capacity());
    Reserved::new(&cached.responses.budget, size, store_size / FILL_SHARE)
}
