//! Responses for directories: listings, and the redirect to the path with a trailing slash.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::request::{Request, split_target};
use rocknet_proto::status::Status;

use super::{PendingResponse, RequestContext, ResponseState};
use crate::blocking::JobError;
use crate::files::cache::l1::CachedEntry;
use crate::files::listing;
use crate::fixed;
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
        // A rule has rewritten the path, so a relative location would be wrong.
        false => format!("{}/", String::from_utf8_lossy(request.path)),
    };
    if let Some(query) = request.query {
        location.push('?');
        location.push_str(&String::from_utf8_lossy(query));
    }
    fixed::redirect(Status::PERMANENT_REDIRECT, location)
}

/// Starts a job that lists a directory. `relative`: path of the directory in its tree.
pub(super) fn list_directory(
    worker: &Rc<Worker>,
    context: &Rc<RequestContext>,
    cached: &CachedEntry,
    relative: &[u8],
    request: &Request<'_>,
) -> ResponseState {
    let (tree, path, relative) = (Arc::clone(&cached.tree), Arc::clone(&cached.path), relative.to_vec());
    let query = request.query.unwrap_or_default().to_vec();
    let accept = request
        .fields
        .get(rocknet_proto::fields::KnownField::Accept)
        .map(<[u8]>::to_vec);
    let job = worker.shared.pool.spawn(tree.route.priority, move || {
        listing::list(&tree, &path, &relative, &query, accept.as_deref())
    });
    ResponseState::Pending(PendingResponse::handler(
        worker,
        context,
        Box::pin(async move {
            match job.await {
                Ok(Ok(page)) => page.into_response(),
                Ok(Err(status)) => fixed::error(status),
                Err(error) => fixed::error(status_of(&error)),
            }
            .into()
        }),
    ))
}

/// Returns 503 for a full or stopped pool, and 500 for a job that panicked.
fn status_of(error: &JobError) -> Status {
    match error {
        JobError::Panicked => Status::INTERNAL_SERVER_ERROR,
        JobError::Rejected | JobError::Stopped => Status::SERVICE_UNAVAILABLE,
    }
}
