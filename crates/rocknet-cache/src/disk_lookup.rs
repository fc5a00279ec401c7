//! Lookup of a response on disk that is not in memory.

use std::task::Poll;
use std::time::Duration;

use rocknet_handler::services::Services;
use rocknet_proto::request::Request;

use crate::cached_route::CachedRoute;
use crate::disk;
use crate::fill::{FILL_SHARE, Reserved};
use crate::key::Key;
use crate::plan::Found;
use crate::policy::NotStored;

/// Maximum time for reading a response. After it, the request is forwarded.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// Looks a response up on disk that is not in memory, and stores it in memory. Returns `None` if no response was found,
/// if the disk is busy, or if the resource was changed meanwhile: if `is_current` returns false.
pub(crate) async fn look_up(
    cached: &CachedRoute,
    key: &Key,
    request: &Request<'_>,
    services: &Services,
    is_current: impl Fn() -> bool,
) -> Option<Found> {
    let disk = cached.disk()?;
    let now = disk::moment(services);
    // Read before the response is compared with the changes on disk. Later changes have a larger number.
    let changes = cached.responses.changes();
    // Bodies of all sites count in the budget. Its limit is a share of the larger store, that of the site or the common
    // one. With the share of a small store, bodies of other sites could use up the whole limit.
    let limit = cached.memory.capacity().max(cached.responses.memory.capacity()) / FILL_SHARE;
    let reserve = |size| Reserved::new(&cached.responses.budget, size, limit);
    let mut job = std::pin::pin!(disk.start_read(key, &request.fields, now, changes, reserve)?);
    let deadline = services.wheel.deadline();
    deadline.set(services.wheel.ticks(MAX_WAIT));
    let result = std::future::poll_fn(|context| match job.as_mut().poll(context) {
        Poll::Pending if deadline.poll_past(context.waker()) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
        Poll::Ready(result) => Poll::Ready(Some(result)),
    })
    .await;
    let Some(Ok(read)) = result else {
        disk.count_busy();
        return None;
    };
    let (stored, _reserved) = read?;
    // The tag of the variant is only a hash.
    if !stored.variation.matches(&request.fields) {
        return None;
    }
    let stored = match cached.memory.put_older(key, &stored, &request.fields, &is_current) {
        Err(NotStored::Purged) => return None,
        // Another request has stored a newer response during the read.
        Ok(Some(newer)) => newer,
        Ok(None) | Err(_) => stored,
    };
    if !is_current() || cached.is_changed(&stored) {
        return None;
    }
    disk.count_hit();
    Some(cached.judge(stored, request, services))
}
