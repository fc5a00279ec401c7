//! Validation of stale responses in the background.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_handler::exchange::Exchange;
use rocknet_io::runtime;

use crate::cached_route::CachedRoute;
use crate::flight::Joined;
use crate::forward::{self, ForwardedRequest};
use crate::key::Key;
use crate::status::Forwarded;
use crate::stored::StoredResponse;

/// Validates a stale response in the background, unless another request does so.
pub(crate) fn revalidate(cached: &Arc<CachedRoute>, exchange: &Exchange, key: Key, stored: Arc<StoredResponse>) {
    let Joined::Leads(leader) = cached.responses.flights.join(&key, exchange.services.clock.uptime_ms()) else {
        return;
    };
    let copy = forward::copy(exchange);
    let cached = Arc::clone(cached);
    runtime::spawn(async move {
        let (services, inner, route) = (
            Rc::clone(&copy.services),
            Arc::clone(&cached.inner),
            Arc::clone(&copy.route),
        );
        let deadline = services.wheel.deadline();
        deadline.set(inner.timeout_ticks(&services.wheel, &route));
        // The request of the client is counted already.
        let forwarded = ForwardedRequest {
            leader: Some(leader),
            ..ForwardedRequest::new(copy, &key, Some(stored), Forwarded::Stale)
        };
        let mut work = std::pin::pin!(forward::forward_uncounted(cached, forwarded));
        // Once `work` is ready, the response is stored, or another task receives its body. At the deadline, the
        // validation is given up.
        std::future::poll_fn(|context| match work.as_mut().poll(context) {
            std::task::Poll::Pending if !deadline.poll_past(context.waker()) => std::task::Poll::Pending,
            _ => std::task::Poll::Ready(()),
        })
        .await;
    });
}
