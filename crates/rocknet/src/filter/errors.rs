//! Errors get their page: the site's own where it names one, else the plain one that says what it means.

use std::sync::Arc;

use crate::cache::Cache;
use crate::cache::entry::{Content, Found};
use crate::handler::fixed;
use crate::response::{Body, FilePart, Response};
use crate::scope::Scope;

/// Whether the site has a page of its own for this answer.
pub fn has_page(scope: &Scope, response: &Response) -> bool {
    response.status.code() >= 400 && scope.errors.contains_key(&response.status.code())
}

/// Puts the site's page into an error answer. Where it cannot be had, the plain page stays.
pub async fn page(cache: &Cache, scope: &Arc<Scope>, response: &mut Response) {
    let Some(path) = scope.errors.get(&response.status.code()) else {
        return;
    };
    let files = scope.pages.as_ref().unwrap_or(scope);
    let Some(entry) = cache.ask(files, &path.as_str().into()).await else {
        return;
    };
    let Found::Asset(asset) = &entry.found else { return };
    // What is missing has an answer too, and it is not the page.
    if asset.status.code() != 200 {
        return;
    }
    response.fields.set("Content-Type", asset.content_type);
    response.body = match &asset.plain.content {
        Content::Memory(bytes) => Body::Bytes(bytes.clone()),
        Content::File(file) => Body::File(FilePart {
            file: Arc::clone(file),
            offset: 0,
            length: file.length,
        }),
    };
}

/// The site's page instead of what another server has to say of an error; that, where the page cannot be had.
pub async fn replace(cache: &Cache, scope: &Arc<Scope>, response: Response) -> Response {
    let mut own = Response {
        status: response.status,
        fields: response.fields.clone(),
        body: Body::Empty,
    };
    OF_CONTENT.iter().for_each(|name| own.fields.remove(name));
    page(cache, scope, &mut own).await;
    match own.body {
        Body::Empty => response,
        _ => own,
    }
}

/// Fields that tell of content which is not sent.
const OF_CONTENT: [&str; 13] = [
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

/// Fills an empty error answer with the plain page; one that has content keeps it.
pub fn fill(response: &mut Response) {
    if response.status.code() < 400 || !matches!(response.body, Body::Empty) {
        return;
    }
    let page = fixed::error(response.status);
    for (name, value) in page.fields.iter() {
        response.fields.set(name, value);
    }
    response.body = page.body;
}
