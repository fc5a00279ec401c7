//! Error pages: the route's own page if it has one, otherwise a plain page that explains the status.

use std::sync::Arc;

use crate::files::cache::FileCache;
use crate::files::entry::{Content, Found};
use crate::files::failure_log;
use crate::files::tree::Tree;
use crate::fixed;
use crate::response::{Body, ErrorPage, FilePart, Response};
use crate::route::Route;
use rocknet_proto::status::Status;

/// Returns true if the route has an error page that replaces this response.
pub fn is_wanted(route: &Route, response: &Response) -> bool {
    let status = response.status.code();
    if status < 400 || !route.errors.contains_key(&status) {
        return false;
    }
    match (response.error_page, &response.body) {
        (ErrorPage::Never, _) | (_, Body::Tunnel(_) | Body::Abort) => false,
        (ErrorPage::Always, _) => true,
        (ErrorPage::IfEmpty, body) => matches!(body, Body::Empty),
    }
}

/// Replaces the body by the error page of the route. If the page cannot be read, the response is not changed. `pages`:
/// tree that contains the error pages; `None` if the route has no root or no error pages.
pub async fn replace(cache: &FileCache, route: &Route, pages: Option<&Arc<Tree>>, response: &mut Response) {
    let (Some(path), Some(pages)) = (route.errors.get(&response.status.code()), pages) else {
        return;
    };
    let pages = pages.page_tree(path);
    let Some(entry) = cache.look_up_shared(pages, &path.as_str().into()).await else {
        return;
    };
    let Found::Asset(asset) = &entry.found else { return };
    // For a missing page, the entry is a 404 response, which must not be sent as the page.
    if asset.status.code() != 200 {
        failure_log::not_found(pages, path);
        return;
    }
    for name in CONTENT_FIELDS {
        // The `Content-Range` of a 416 states the complete length, not the part that is sent (RFC 9110 §14.4).
        if name != "Content-Range" || response.status != Status::RANGE_NOT_SATISFIABLE {
            response.fields.remove(name);
        }
    }
    response.is_negotiated = false;
    response.fields.set("Content-Type", &asset.content_type);
    response.fields.set("X-Content-Type-Options", "nosniff");
    response.body = match &asset.plain.content {
        Content::Memory(bytes) => Body::Bytes(bytes.clone()),
        Content::File(file) => Body::File(FilePart {
            file: Arc::clone(file),
            offset: 0,
            length: file.length,
        }),
    };
}

/// Fields that apply only to the replaced body.
const CONTENT_FIELDS: [&str; 13] = [
    "Accept-Ranges",
    "Content-Digest",
    "Content-Disposition",
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-Location",
    "Content-Range",
    "Content-Security-Policy",
    "Content-Type",
    "ETag",
    "Last-Modified",
    "Repr-Digest",
];

/// Adds the plain page to an error response without a body. A response with a body, or one that must have no page
/// ([`ErrorPage::Never`]), is not changed.
pub fn fill(response: &mut Response) {
    let allows_page = response.error_page != ErrorPage::Never;
    if response.status.code() < 400 || !allows_page || !matches!(response.body, Body::Empty) {
        return;
    }
    let page = fixed::error(response.status);
    for (name, value) in page.fields.iter() {
        response.fields.set(name, value);
    }
    response.body = page.body;
    response.is_negotiated = page.is_negotiated;
}
