//! Invalidation of stored responses by requests that may change their resources.

use rocknet_handler::client::Client;
use rocknet_handler::response::Response;
use rocknet_proto::request::Request;

use crate::cached_route::CachedRoute;
use crate::key::{self, Key};

impl CachedRoute {
    /// Drops what is stored for the URI of a request that may have changed its resource (RFC 9111 §4.4).
    pub fn invalidate(&self, request: &Request<'_>, is_secure: bool, peer: Client, response: &Response) {
        if !matches!(response.status.code(), 200..400) {
            return;
        }
        let drop_target = |target: &[u8]| {
            let mut prefix = Key::new();
            key::of_uri(&mut prefix, &self.route, is_secure, request.authority, target);
            self.responses.invalidate(&prefix);
        };
        drop_target(request.target);
        // The key of a request that the rules have rewritten has more parts.
        if let Some(key) = key::of_request(request, &self.route, is_secure, peer) {
            self.responses.invalidate(&key);
        }
        for name in ["Location", "Content-Location"] {
            if let Some(target) = response
                .fields
                .value(name)
                .and_then(|uri| same_origin(uri, request.authority))
            {
                drop_target(target.as_bytes());
            }
        }
    }
}

/// Returns path and query of a URI reference with this authority; `None` for another one.
fn same_origin<'u>(uri: &'u str, authority: &[u8]) -> Option<&'u str> {
    let uri = uri.split('#').next().unwrap_or_default();
    if uri.starts_with('/') && !uri.starts_with("//") {
        return Some(uri);
    }
    let (_, rest) = uri.split_once("://")?;
    let path = rest.find('/')?;
    let (host, target) = rest.split_at(path);
    host.as_bytes().eq_ignore_ascii_case(authority).then_some(target)
}
