//! Mirror of a proxied route: an upstream that gets copies of the route's requests.
//!
//! A copy is recorded while the request itself is forwarded. The copy is sent when the request body is complete.

use std::sync::Arc;

use rocknet_config::model;

use crate::mirror_queue::{MirrorQueue, MirroredRequest, log_dropped};
use crate::request::UpstreamRequest;
use crate::upstream::Upstream;
use crate::upstreams::Upstreams;
use rocknet_handler::exchange::RequestBody;

/// Mirror of one route.
pub struct Mirror {
    upstream: Arc<Upstream>,
    /// Average number of requests that are copied out of every [`model::Mirror::ALL`] requests.
    share: u64,
    /// Maximum size of a copied request body in bytes.
    max_body: usize,
    copies: Arc<MirrorQueue>,
}

impl Mirror {
    /// Prepares the mirror of a configured route.
    pub fn new(model: &model::Mirror, resolve: model::Resolve, upstreams: &Upstreams) -> Mirror {
        Mirror {
            copies: Arc::clone(&upstreams.copies),
            // A mirror has neither health checks nor TLS.
            upstream: upstreams.get(&model.to, None, resolve, None),
            share: model.share.into(),
            max_body: model.content,
        }
    }

    /// Starts to copy a request if `random`, a random number, selects it. `sent` is the request as it is sent to the
    /// upstream.
    pub(super) fn copy(&self, sent: &UpstreamRequest<'_>, body: &mut RequestBody, random: u64) {
        let is_drawn = random % u64::from(model::Mirror::ALL) < self.share;
        // Tunnels are not copied, nor are requests whose body length is known to exceed the limit.
        if !is_drawn || sent.upgrade().is_some() || sent.length().is_some_and(|length| length > self.max_body as u64) {
            return;
        }
        let mut copy = MirroredRequest::new(&self.upstream, self.max_body, sent.length(), &self.copies);
        if sent.encode(&mut copy.engine, &self.upstream, &mut copy.bytes).is_err() {
            return;
        }
        if !copy.count_bytes() {
            return log_dropped();
        }
        match sent.has_body() {
            true => body.tee_to(Box::new(copy)),
            false => copy.send(),
        }
    }
}
