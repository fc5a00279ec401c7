//! Coded forms of what the cache holds: made once and kept, or made while they are sent.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::request::OwnedRequest;
use rocknet_proto::semantics::negotiation::Coding;

use super::{Dispatched, Outcome, later};
use crate::blocking::JobError;
use crate::cache::entry::{Asset, Content, Found, Variant};
use crate::cache::front::Known;
use crate::filter;
use crate::handler::files::{answer, encode, load};
use crate::response::{Body, Response};
use crate::worker::Worker;

/// Makes a coded form: kept, where the plain one is in memory; while it is sent, where it is not. `None`: there is too
/// much of that under way, and the plain one does.
pub(super) fn encode_form(
    worker: &Rc<Worker>,
    known: &Rc<Known>,
    asset: &Asset,
    coding: Coding,
    owned: impl FnOnce() -> Rc<OwnedRequest>,
) -> Option<Dispatched> {
    match &asset.plain.content {
        Content::Memory(content) => {
            let (content, entry, scope) = (content.clone(), Arc::clone(&known.entry), Arc::clone(&known.scope));
            let (cache, path, request) = (worker.shared.cache.clone(), Arc::clone(&known.path), owned());
            let job = worker.shared.pool.spawn(scope.priority, move || {
                let Found::Asset(asset) = &entry.found else { return };
                // Many may have asked for it at once; the first job did it for all.
                if asset.encoded(coding).is_some() {
                    return;
                }
                let variant = encode::encode(coding, &content)
                    .map(|encoded| Box::new(load::coded(&scope, asset, coding, encoded)));
                let grown = variant.as_deref().map_or(0, Variant::size);
                if asset.keep(coding, variant) {
                    cache.grew(scope.id, &path, grown);
                }
            });
            let known = Rc::clone(known);
            Some(later(async move {
                let (Err(error), Found::Asset(asset)) = (job.await, &known.entry.found) else {
                    return Outcome::Known(known, request);
                };
                // Without a coded form the plain one does; the next request may find more room.
                tracing::debug!("cannot compress {}: {error}", known.path);
                if error == JobError::Panicked {
                    asset.keep(coding, None);
                }
                let mut response = answer::plain(asset);
                filter::headers::apply(&known.scope, response.status, &mut response.fields);
                Outcome::Response(Box::new(response))
            }))
        }
        Content::File(file) => {
            let pool = worker.shared.pool.clone();
            let stream = match encode::EncodedFile::new(coding, Arc::clone(file), pool, known.scope.priority) {
                Ok(stream) => stream?,
                Err(error) => {
                    tracing::warn!("cannot compress {}: {error}", known.path);
                    return None;
                }
            };
            let mut fields = asset.fields.clone();
            fields.remove("Accept-Ranges");
            fields.add("Content-Encoding", coding.name());
            if let Some(etag) = asset.tag(coding) {
                fields.add("ETag", String::from_utf8_lossy(etag.as_bytes()));
            }
            filter::headers::apply(&known.scope, asset.status, &mut fields);
            Some(Dispatched::Respond(Box::new(Response {
                status: asset.status,
                fields,
                body: Body::Stream(Box::new(stream)),
            })))
        }
    }
}
