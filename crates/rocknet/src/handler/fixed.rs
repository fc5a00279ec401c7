//! Answers that need no look at a disk: errors, redirects, OPTIONS, the welcome page.

use rocknet_config::model::Mode;
use rocknet_io::socket::Address;
use rocknet_proto::h1::{FieldFault, Refusal};
use rocknet_proto::method::Method;
use rocknet_proto::semantics::authority::{Authority, HOST_BUFFER};
use rocknet_proto::status::Status;

use crate::pages::unknown_site::{Link, UnknownSite};
use crate::pages::{self, welcome::Welcome};
use crate::report;
use crate::response::{ErrorPage, Response};
use crate::snapshot::Snapshot;

/// The plain error page for `status`.
pub fn error(status: Status) -> Response {
    replaceable(error_with_hint(status, None))
}

/// Lets the page of the route take the place of an error page.
fn replaceable(mut response: Response) -> Response {
    response.error_page = ErrorPage::Always;
    response
}

/// The error page with a line on what to do about it. The hint must not repeat bytes of the request.
pub fn error_with_hint(status: Status, hint: Option<&str>) -> Response {
    let mut page = Vec::with_capacity(1536);
    pages::error::render(status.code(), status.reason(), hint, &mut page);
    let mut response = Response::new(status)
        .with("Content-Type", pages::CONTENT_TYPE)
        .with("X-Content-Type-Options", "nosniff")
        .body(page);
    // A page of a kilobyte is not worth a coding for each response: clients cause errors and redirects by the thousand.
    response.is_negotiated = true;
    response
}

/// The error page for a request that is not accepted, with the reason where it says more than the page does.
pub fn refused(refusal: Refusal) -> Response {
    let hint = match refusal {
        Refusal::ContentTooLarge | Refusal::TargetTooLong | Refusal::Field(FieldFault::TooLarge) => None,
        _ => Some(refusal.reason()),
    };
    replaceable(error_with_hint(refusal.status(), hint))
}

/// The answer to a request in the clear whose host no site has. In `dev` mode it lists the sites.
pub fn unknown_site(snapshot: &Snapshot, address: &Address, authority: &[u8]) -> Response {
    let mut lower = [0; HOST_BUFFER];
    let authority = Authority::parse(authority);
    let port = authority.as_ref().and_then(|authority| authority.port).unwrap_or(80);
    let host = authority.map(|authority| authority.lower_host(&mut lower).to_owned());
    let urls = match snapshot.config.server.mode {
        Mode::Dev => report::first_urls(snapshot, address, port, MAX_LINKS),
        Mode::Prod => Vec::new(),
    };
    let sites: Vec<Link> = (urls.into_iter())
        .map(|url| Link {
            is_open: !url.contains('*'),
            url,
        })
        .collect();
    let status = Status::NOT_FOUND;
    let page = UnknownSite {
        host: host.as_deref().filter(|host| !host.is_empty()),
        sites: &sites,
        omitted: snapshot.config.sites.len().saturating_sub(MAX_LINKS),
    };
    let mut content = Vec::new();
    pages::unknown_site::render(status.code(), status.reason(), &page, &mut content);
    Response::new(status)
        .with("Content-Type", pages::CONTENT_TYPE)
        .with("Content-Security-Policy", pages::CONTENT_SECURITY_POLICY)
        .with("X-Content-Type-Options", "nosniff")
        .body(content)
}

/// Most sites listed on the page for an unknown host: a developer has fewer, and the page stays below 10 KB.
const MAX_LINKS: usize = 50;

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

#[cfg(test)]
mod tests {
    use rocknet_proto::h1::FramingFault;

    use super::*;
    use crate::response::Body;

    #[test]
    fn pages_say_each_thing_once() {
        for (refusal, said) in [
            (
                Refusal::ContentTooLarge,
                "<p>What you sent is larger than this site accepts.</p></main>",
            ),
            (Refusal::TargetTooLong, "question mark.</p></main>"),
            (Refusal::Field(FieldFault::TooLarge), "often helps.</p></main>"),
            (
                Refusal::Field(FieldFault::TooMany),
                "often helps.</p><p>too many fields</p></main>",
            ),
            (Refusal::HostMissing, "as a request.</p><p>no Host</p></main>"),
            (
                Refusal::Framing(FramingFault::LengthInvalid),
                "<p>a malformed Content-Length</p></main>",
            ),
        ] {
            let Body::Bytes(page) = refused(refusal).body else {
                panic!("{refusal:?}: no page");
            };
            let page = String::from_utf8_lossy(&page).into_owned();
            assert!(page.contains(said), "{refusal:?}: {page}");
        }
    }
}
