//! The mirror of a proxied route: another server that gets copies of its requests.
//!
//! A copy is written down while the request itself is passed on, and leaves when its content has come whole.

use std::sync::Arc;

use rocknet_config::model;

use crate::mirror_queue::{MirrorQueue, MirroredRequest, left_out};
use crate::request::UpstreamRequest;
use crate::upstream::Upstream;
use crate::upstreams::Upstreams;
use rocknet_handler::exchange::RequestBody;

/// Where copies of the requests of one place go.
pub struct Mirror {
    upstream: Arc<Upstream>,
    share: u64,
    most: usize,
    copies: Arc<MirrorQueue>,
}

impl Mirror {
    pub fn new(model: &model::Mirror, resolve: model::Resolve, upstreams: &Upstreams) -> Mirror {
        Mirror {
            copies: Arc::clone(&upstreams.copies),
            upstream: upstreams.of(&model.to, None, resolve, None),
            share: model.share.into(),
            most: model.content,
        }
    }

    /// Begins a copy of a request, if the dice say so. It leaves when its content has passed by.
    pub(super) fn copy(&self, sent: &UpstreamRequest<'_>, content: &mut RequestBody, dice: u64) {
        let is_drawn = dice % u64::from(model::Mirror::ALL) < self.share;
        // A tunnel has no copy, and too much content is known beforehand mostly.
        if !is_drawn || sent.wish().is_some() || sent.length().is_some_and(|length| length > self.most as u64) {
            return;
        }
        let mut copy = MirroredRequest::new(&self.upstream, self.most, &self.copies);
        if sent.encode(&mut copy.engine, &self.upstream, &mut copy.bytes).is_err() {
            return;
        }
        if !copy.count() {
            return left_out();
        }
        match sent.has_content() {
            true => content.tee_to(Box::new(copy)),
            false => copy.leave(),
        }
    }
}
