//! Responses for directories: listings, archives, and the redirect to the path with a trailing slash.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_pages::listing::Query;
use rocknet_proto::fields::KnownField;
use rocknet_proto::request::{Request, split_target};
use rocknet_proto::status::Status;

use super::finish::finish;
use super::reachable::ReachablePaths;
use super::{PendingResponse, RequestContext, ResponseState};
use crate::files::archive::{self, ArchiveRequest};
use crate::files::cache::l1::CachedEntry;
use crate::files::listing::{self, ListingRequest};
use crate::fixed;
use crate::handler::HandlerFuture;
use crate::response::Response;
use crate::worker::Worker;

/// Returns 308 to the same path with a trailing slash. Unless a rule has rewritten the path, the location is relative,
/// so that it is correct for any proxy prefix and host name.
pub(super) fn redirect_with_slash(request: &Request<'_>) -> Response {
    // The target of the request can also be a whole URL, which ends with the path.
    let is_unrewritten = split_target(request.target).0.ends_with(request.path);
    let last = request.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let mut location = match is_unrewritten {
        // "./" keeps a colon in the name from being parsed as a scheme.
        true => format!("./{}/", String::from_utf8_lossy(last)),
        false => format!("{}/", String::from_utf8_lossy(request.path)),
    };
    if let Some(query) = request.query {
        location.push('?');
        location.push_str(&String::from_utf8_lossy(query));
    }
    fixed::redirect(Status::PERMANENT_REDIRECT, location)
}

/// Starts a job that lists a directory, or that packs it as an archive. `relative`: path of the directory in its tree.
pub(super) fn list_directory(
    worker: &Rc<Worker>,
    context: &Rc<RequestContext>,
    cached: &CachedEntry,
    relative: &[u8],
    request: &Request<'_>,
) -> ResponseState {
    let (tree, path, relative) = (Arc::clone(&cached.tree), Arc::clone(&cached.path), relative.to_vec());
    // The context of a request to a folder contains site, client and request, so neither error 500 occurs.
    let Some(access) = ReachablePaths::below(context, request, &tree, &path) else {
        return finish(
            worker,
            context,
            Some(request),
            fixed::error(Status::INTERNAL_SERVER_ERROR),
        );
    };
    let query = Query::parse(request.query.unwrap_or_default());
    let pool = worker.shared.pool.clone();
    let zip = tree.browse.as_ref().and_then(|browse| browse.zip.clone());
    let work: HandlerFuture = match zip.filter(|_| query.zip) {
        Some(limits) => {
            let Some(client) = context.client else {
                let response = fixed::error(Status::INTERNAL_SERVER_ERROR);
                return finish(worker, context, Some(request), response);
            };
            let request = ArchiveRequest {
                tree,
                path,
                relative,
                limits,
                client,
            };
            let limit = worker.shared.registries.archive_limit.clone();
            Box::pin(async move { archive::respond(request, access, limit, pool).await.into() })
        }
        None => {
            let accept = request.fields.get(KnownField::Accept).map(<[u8]>::to_vec);
            let priority = tree.route.priority;
            let request = ListingRequest {
                tree,
                path,
                relative,
                query,
                accept,
            };
            let job = pool.spawn(priority, move || request.list(&access));
            Box::pin(async move {
                match job.await {
                    Ok(Ok(page)) => page.into_response(),
                    Ok(Err(status)) => fixed::error(status),
                    Err(error) => fixed::error(listing::status_of(&error)),
                }
                .into()
            })
        }
    };
    ResponseState::Pending(PendingResponse::handler(worker, context, work))
}
