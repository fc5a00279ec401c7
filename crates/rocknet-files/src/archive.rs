//! Folders as zip archives (`browse.zip`), made while they are sent.
//!
//! ```text
//! scan.rs   ─▶ the entries: what listings below the folder lead to, within limits
//! stream.rs ─▶ reads the files, one piece in each job of the blocking pool
//! format.rs ─▶ the container: headers, central directory, zip64
//! ```
//! The sizes of all files are known before the first byte is sent. Without compression, so is the length of the
//! archive, and a client sees how much is left. The memory of a download is its list of entries and one piece
//! ([decision 28](../../../docs/decisions/0028-zip-archives.md)).

mod format;
mod name;
mod request;
mod scan;
mod stream;

use std::sync::Arc;

use rocknet_blocking::Pool;
use rocknet_handler::fixed;
use rocknet_handler::response::{Body, Response};
use rocknet_proto::status::Status;
use tokio::sync::Semaphore;

use crate::path_access::PathAccess;
use stream::ArchiveStream;

pub use request::ArchiveRequest;

/// Maximum number of archives that one server makes at the same time.
const MAX_ARCHIVES: usize = 32;
/// Delay in seconds after which a client may retry if the server makes as many archives as it may.
const RETRY_AFTER_S: &str = "10";

/// Limits the archives that one server makes at the same time. All clones share the limit.
#[derive(Clone)]
pub struct ArchiveLimit(Arc<Semaphore>);

impl Default for ArchiveLimit {
    fn default() -> ArchiveLimit {
        ArchiveLimit(Arc::new(Semaphore::new(MAX_ARCHIVES)))
    }
}

/// Scans a folder and returns the response with its archive. If the future is dropped, the scan ends.
pub async fn respond(
    request: ArchiveRequest,
    access: impl PathAccess + 'static,
    limit: ArchiveLimit,
    pool: Pool,
) -> Response {
    let Ok(permit) = limit.0.try_acquire_owned() else {
        return fixed::error(Status::SERVICE_UNAVAILABLE).with("Retry-After", RETRY_AFTER_S);
    };
    // The job that scans ends once this value is dropped.
    let is_wanted = Arc::new(());
    let watch = Arc::downgrade(&is_wanted);
    let priority = request.tree.route.priority;
    let name = name::of_folder(&request.path);
    let tree = Arc::clone(&request.tree);
    let job = pool.spawn(priority, move || {
        let scanned = scan::scan(&request, &name, &access, &|| watch.strong_count() > 0)?;
        Ok::<_, Status>((scanned, name, request.limits.compress))
    });
    let (scanned, name, compress) = match job.await {
        Ok(Ok(scanned)) => scanned,
        Ok(Err(status)) => return fixed::error(status),
        Err(error) => return fixed::error(crate::listing::status_of(&error)),
    };
    drop(is_wanted);
    let stream = ArchiveStream::new(tree, scanned, compress, pool, permit);
    let mut response = Response::new(Status::OK)
        .with("Content-Type", "application/zip")
        .with("Content-Disposition", name::disposition(&format!("{name}.zip")))
        .with("X-Content-Type-Options", "nosniff")
        // The archive has no validator, so that a stored copy could not be used again.
        .with("Cache-Control", "no-store")
        .with("Accept-Ranges", "none")
        .body(Body::Stream(Box::new(stream)));
    response.is_negotiated = true;
    response
}

#[cfg(test)]
mod tests;
