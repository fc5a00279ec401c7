//! Responses that need no look at a disk: errors, redirects, OPTIONS.

use rocknet_proto::status::Status;

use crate::response::{ErrorPage, Response};

/// The plain error page for `status`.
pub fn error(status: Status) -> Response {
    replaceable(error_with_hint(status, None))
}

/// Lets the page of the route take the place of an error page.
pub fn replaceable(mut response: Response) -> Response {
    response.error_page = ErrorPage::Always;
    response
}

/// The error page with a line on what to do about it. The hint must not repeat bytes of the request.
pub fn error_with_hint(status: Status, hint: Option<&str>) -> Response {
    let mut page = Vec::with_capacity(1536);
    rocknet_pages::error::render(status.code(), status.reason(), hint, &mut page);
    let mut response = Response::new(status)
        .with("Content-Type", rocknet_pages::CONTENT_TYPE)
        .with("X-Content-Type-Options", "nosniff")
        .body(page);
    // A page of a kilobyte is not worth a coding for each response: clients cause errors and redirects by the thousand.
    response.is_negotiated = true;
    response
}

/// Sends the client to `location`, which has been checked to hold nothing but a URL.
pub fn redirect(status: Status, location: String) -> Response {
    let mut response = error(status);
    response.fields.add("Location", location);
    response
}

/// 405, or the answer to OPTIONS: what may be done with a file.
pub const FILE_METHODS: &str = "GET, HEAD, OPTIONS";

pub fn method_not_allowed() -> Response {
    error(Status::METHOD_NOT_ALLOWED).with("Allow", FILE_METHODS)
}

pub fn options() -> Response {
    Response::new(Status::NO_CONTENT).with("Allow", FILE_METHODS)
}
