//! Response to a request for a host that no site has.

use rocknet_config::model::Mode;
use rocknet_io::socket::Address;
use rocknet_proto::semantics::authority::{Authority, HOST_BUFFER};
use rocknet_proto::status::Status;

use crate::pages;
use crate::pages::unknown_site::{SiteLink, UnknownSite};
use crate::report;
use crate::response::Response;
use crate::snapshot::Snapshot;

/// Returns the response to a request in clear text whose host belongs to no site. In `dev` mode the response lists the
/// sites. `address`: configured address of the listener. `authority`: host of the request, with its port if it has one.
pub(super) fn respond(snapshot: &Snapshot, address: &Address, authority: &[u8]) -> Response {
    let mut lower = [0; HOST_BUFFER];
    let authority = Authority::parse(authority);
    // An authority without a port means the default port of `http`.
    let port = authority.as_ref().and_then(|authority| authority.port).unwrap_or(80);
    let host = authority.map(|authority| authority.lower_host(&mut lower).to_owned());
    let urls = match snapshot.config.server.mode {
        Mode::Dev => report::first_urls(snapshot, address, port, MAX_LINKS),
        Mode::Prod => Vec::new(),
    };
    let sites: Vec<SiteLink> = (urls.into_iter())
        .map(|url| SiteLink {
            // A browser cannot open a URL with a wildcard.
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

/// Maximum number of sites on the page: more than a developer usually has, and few enough for a page below 10 KB.
const MAX_LINKS: usize = 50;
