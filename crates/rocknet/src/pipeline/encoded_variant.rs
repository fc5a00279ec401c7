//! Creates coded forms of cached files. A file is encoded once and its coded form is stored, or it is encoded while it
//! is sent.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::semantics::negotiation::Coding;

use super::finish::finish;
use super::{PendingResponse, RequestContext, ResponseState};
use crate::blocking::JobError;
use crate::files::cache::l1::CachedEntry;
use crate::files::entry::{Asset, Content, Found, Variant};
use crate::files::{encode, load, representation};
use crate::handler::HandlerOutput;
use crate::response::{Body, Response};
use crate::worker::Worker;

/// Encodes a file. The coded form is stored if the plain file is in memory; otherwise the file is encoded while it is
/// sent. Returns `None` if too many files are being encoded, or if the encoder fails; the caller then sends the plain
/// file.
pub(super) fn create(
    worker: &Rc<Worker>,
    context: &Rc<RequestContext>,
    cached: &Rc<CachedEntry>,
    asset: &Asset,
    coding: Coding,
) -> Option<ResponseState> {
    match &asset.plain.content {
        Content::Memory(content) => {
            let (content, entry, tree) = (content.clone(), Arc::clone(&cached.entry), Arc::clone(&cached.tree));
            let (cache, path) = (worker.shared.cache.clone(), Arc::clone(&cached.path));
            let job = worker.shared.pool.spawn(tree.route.priority, move || {
                let Found::Asset(asset) = &entry.found else { return };
                // Several requests may have started a job at the same time; the first job encodes for all of them.
                if asset.encoded(coding).is_some() {
                    return;
                }
                let variant = encode::encode(coding, &content)
                    .map(|encoded| Box::new(load::coded(&tree, asset, coding, encoded)));
                // Number of bytes by which the coded form enlarges the cache entry.
                let grown = variant.as_deref().map_or(0, Variant::size);
                if asset.set_encoded(coding, variant) {
                    cache.entry_grew(tree.id, &path, grown);
                }
            });
            let cached = Rc::clone(cached);
            Some(ResponseState::Pending(PendingResponse::handler(
                worker,
                context,
                Box::pin(async move {
                    let (Err(error), Found::Asset(asset)) = (job.await, &cached.entry.found) else {
                        // The entry now contains the coded form, or records that the file has no form in this coding.
                        return HandlerOutput::Cached(cached);
                    };
                    // The plain file is sent instead. The next request tries again, unless the encoder has panicked.
                    tracing::debug!("cannot compress {}: {error}", cached.path);
                    if error == JobError::Panicked {
                        // `None` records that the file has no form in this coding.
                        asset.set_encoded(coding, None);
                    }
                    representation::plain_response(asset).into()
                }),
            )))
        }
        Content::File(file) => {
            let pool = worker.shared.pool.clone();
            let stream = match encode::EncodedFile::new(
                &worker.files.encoder_limit,
                coding,
                Arc::clone(file),
                pool,
                cached.tree.route.priority,
            ) {
                Ok(stream) => stream?,
                Err(error) => {
                    tracing::warn!("cannot compress {}: {error}", cached.path);
                    return None;
                }
            };
            let mut response = Response::new(asset.status);
            response.fields = asset.fields.clone();
            // Clients cannot request ranges of a body that is encoded while it is sent.
            response.fields.remove("Accept-Ranges");
            response.fields.add("Content-Encoding", coding.name());
            if let Some(etag) = asset.tag(coding) {
                response.fields.add("ETag", String::from_utf8_lossy(etag.as_bytes()));
            }
            response.body = Body::Stream(Box::new(stream));
            response.is_negotiated = true;
            Some(finish(worker, context, None, response))
        }
    }
}
