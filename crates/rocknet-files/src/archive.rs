//! Folders as zip archives (`browse.zip`), made while they are sent.
//!
//! ```text
//! limit.rs  ─▶ a permit, within the limits of the server and of the client
//! scan.rs   ─▶ the entries: all files and folders that a client can reach by listings, up to configured limits
//! stream.rs ─▶ reads the files, one piece in each job of the blocking pool; version.rs detects changes
//! format.rs ─▶ the container: headers, central directory, zip64
//! ```
//! A scan runs in short steps, each a job of the blocking pool. The sizes of all files are known before the first byte
//! is sent. Without compression, so is the length of the archive, and a client sees how much is left. The memory of a
//! download is its list of entries and one piece ([decision 28](../../../docs/decisions/0028-zip-archives.md)).

mod folder;
mod format;
mod limit;
mod name;
mod request;
mod scan;
mod stream;
mod version;

use rocknet_blocking::Pool;
use rocknet_handler::fixed;
use rocknet_handler::response::{Body, Response};
use rocknet_proto::status::Status;

use crate::path_access::PathAccess;
use limit::{ArchivePermit, Refusal, ScanPermit};
use scan::{Scan, Scanned, Step};
use stream::ArchiveStream;

pub use limit::ArchiveLimit;
pub use request::ArchiveRequest;

/// Value of `Retry-After`, in seconds, if the server or the client has as many archives as it may. The value is a
/// guess, because the end of a download depends on its client.
const RETRY_AFTER_S: &str = "10";

/// Scans a folder and returns the response with its archive. If the future is dropped, the scan ends after its current
/// step.
pub async fn respond(
    request: ArchiveRequest,
    access: impl PathAccess + 'static,
    limit: ArchiveLimit,
    pool: Pool,
) -> Response {
    let permit = match limit.acquire(request.client, request.limits.per_client) {
        Ok(permit) => permit,
        Err(refusal) => {
            let status = match refusal {
                Refusal::Client => Status::TOO_MANY_REQUESTS,
                Refusal::Server => Status::SERVICE_UNAVAILABLE,
            };
            return fixed::error(status).with("Retry-After", RETRY_AFTER_S);
        }
    };
    let (tree, compress, name) = (
        std::sync::Arc::clone(&request.tree),
        request.limits.compress,
        name::of_folder(&request.path),
    );
    // Always `Some`, because the semaphores of the limit are never closed.
    let scan_permit = limit.scan(&permit).await;
    let scanned = match scan(request, name.clone(), access, permit, &pool, scan_permit).await {
        Ok(scanned) => scanned,
        Err(status) => return fixed::error(status),
    };
    let stream = ArchiveStream::new(tree, scanned, compress, pool);
    let mut response = Response::new(Status::OK)
        .with("Content-Type", "application/zip")
        .with("Content-Disposition", name::disposition(&format!("{name}.zip")))
        .with("X-Content-Type-Options", "nosniff")
        // The archive has no validator, so a stored copy could not be revalidated.
        .with("Cache-Control", "no-store")
        .with("Accept-Ranges", "none")
        .body(Body::Stream(Box::new(stream)));
    // An archive gets no content coding, which would remove its length.
    response.is_negotiated = true;
    response
}

/// Scans a folder, one step in each job of the pool. `scan_permit`: held until the scan ends. A step that runs when the
/// future is dropped keeps the permits of the archive and of the scan until the step ends.
async fn scan<A: PathAccess + 'static>(
    request: ArchiveRequest,
    name: String,
    access: A,
    permit: ArchivePermit,
    pool: &Pool,
    mut scan_permit: Option<ScanPermit>,
) -> Result<Box<Scanned>, Status> {
    let priority = request.tree.route.priority;
    let mut job = pool.spawn(priority, move || {
        Ok((Step::More(Scan::start(request, name, access, permit)?), scan_permit))
    });
    loop {
        let (step, held) = job.await.map_err(|error| crate::listing::status_of(&error))??;
        let scan = match step {
            Step::Done(scanned) => return Ok(scanned),
            Step::More(scan) => scan,
        };
        scan_permit = held;
        job = pool.spawn(priority, move || Ok((scan.step()?, scan_permit)));
    }
}

#[cfg(test)]
mod tests;
