//! Responses generated in memory: error pages, redirects, OPTIONS.

use rocknet_proto::status::Status;

use crate::response::{ErrorPage, Response};

/// Returns the plain error page for `status`. The route's own error page may replace it.
pub fn error(status: Status) -> Response {
    replaceable(error_with_hint(status, None))
}

/// Permits the route's error page to replace the response.
pub fn replaceable(mut response: Response) -> Response {
    response.error_page = ErrorPage::Always;
    response
}

/// Returns the error page with a hint that states the remedy. The hint must not contain bytes of the request, because a
/// link could otherwise put a text of its own on the page.
///
/// The page takes precedence over the route's own error page, unless the response is made [`replaceable`].
pub fn error_with_hint(status: Status, hint: Option<&str>) -> Response {
    let mut page = Vec::with_capacity(1536);
    rocknet_pages::error::render(status.code(), status.reason(), hint, &mut page);
    let mut response = Response::new(status)
        .with("Content-Type", rocknet_pages::CONTENT_TYPE)
        .with("X-Content-Type-Options", "nosniff")
        .body(page);
    // Prevents content coding, whose cost is too high for a page of 1 KB: clients can cause thousands of errors.
    response.is_negotiated = true;
    response
}

/// Returns a redirect to `location`. The caller must have checked that `location` is a URL without control characters.
pub fn redirect(status: Status, location: String) -> Response {
    let mut response = error(status);
    response.fields.add("Location", location);
    response
}

/// Value of `Allow` for files, in 405 responses and in responses to OPTIONS.
pub const FILE_METHODS: &str = "GET, HEAD, OPTIONS";

/// Returns the 405 response for a file.
pub fn method_not_allowed() -> Response {
    error(Status::METHOD_NOT_ALLOWED).with("Allow", FILE_METHODS)
}

/// Returns the response to OPTIONS for a file (RFC 9110 §9.3.7).
pub fn options() -> Response {
    Response::new(Status::NO_CONTENT).with("Allow", FILE_METHODS)
}
