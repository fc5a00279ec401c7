//! Answers that need no look at a disk: errors, redirects, OPTIONS, the welcome page.

use rocknet_io::socket::Address;
use rocknet_proto::method::Method;
use rocknet_proto::status::Status;

use crate::pages::{self, welcome::Welcome};
use crate::response::Response;
use crate::snapshot::Snapshot;

/// The plain error page for `status`.
pub fn error(status: Status) -> Response {
    error_with_hint(status, None)
}

/// The error page with a line on what to do about it. The hint must not repeat bytes of the request.
pub fn error_with_hint(status: Status, hint: Option<&str>) -> Response {
    let mut page = Vec::with_capacity(1536);
    pages::error::render(status.code(), status.reason(), hint, &mut page);
    Response::new(status)
        .with("Content-Type", pages::CONTENT_TYPE)
        .with("X-Content-Type-Options", "nosniff")
        .body(page)
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

/// The default page, at the root of a server that has no configuration.
pub fn welcome(snapshot: &Snapshot, address: &Address, path: &str, method: Method) -> Response {
    match method {
        Method::Get | Method::Head if path == "/" => {}
        Method::Get | Method::Head => return error(Status::NOT_FOUND),
        Method::Options => return options(),
        _ => return method_not_allowed(),
    }
    let listen = address.to_string();
    let file = snapshot.config.files.first().map(|path| path.display().to_string());
    let page = pages::welcome::html(&Welcome {
        listen: &listen,
        config_path: file.as_deref(),
        root: None,
        version: env!("CARGO_PKG_VERSION"),
    });
    Response::new(Status::OK)
        .with("Content-Type", pages::CONTENT_TYPE)
        .with("Content-Security-Policy", pages::CONTENT_SECURITY_POLICY)
        .with("X-Content-Type-Options", "nosniff")
        .with("Cache-Control", "no-cache")
        .body(page)
}
