//! Invalidation of stored responses by requests that may change their resources.

use rocknet_handler::ExchangeRef;
use rocknet_handler::response::Response;

use crate::cached_route::CachedRoute;
use crate::key::{self, Key};

impl CachedRoute {
    /// Drops what is stored for the URI of a request that may have changed its resource (RFC 9111 §4.4).
    pub fn invalidate(&self, exchange: &ExchangeRef<'_>, response: &Response) {
        if !matches!(response.status.code(), 200..400) {
            return;
        }
        let request = exchange.request;
        let is_secure = exchange.tls.is_some();
        let drop_target = |target: &[u8]| {
            let mut key = Key::new();
            key::of_uri(&mut key, &self.route.label.site, is_secure, request.authority, target);
            self.responses.invalidate(&self.memory, &key);
        };
        // This key can differ from that of `drop_target`, for instance if rules have rewritten the request.
        if let Some(key) = key::of_request(exchange, &self.route, self.key.as_ref()) {
            self.responses.invalidate(&self.memory, &key);
        }
        let others = ["Location", "Content-Location"].into_iter().filter_map(|name| {
            let uri = response.fields.value(name)?;
            same_origin(uri, request.authority)
        });
        // `url_changes` is set if the configuration has a template for keys, such as `key = "{host}{path}"`. Otherwise
        // the keys are made from the URIs.
        let Some(changes) = &self.url_changes else {
            drop_target(request.target);
            others.for_each(|target| drop_target(target.as_bytes()));
            return;
        };
        // The keys of a template cannot be derived from a URI, so all responses for its host and path are invalidated.
        let invalidate = |url: &[u8]| self.responses.invalidate_url(changes, &self.route.label.site, url);
        invalidate(&key::url_of(request, is_secure));
        for target in others {
            let path = target.split('?').next().unwrap_or_default();
            invalidate(&key::url(request.authority, path.as_bytes(), is_secure));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_origin_is_invalidated() {
        for (uri, expected) in [
            ("/a?b#c", Some("/a?b")),
            ("http://h.test/a", Some("/a")),
            ("https://H.test/a", Some("/a")),
            ("http://other.test/a", None),
            ("//other.test/a", None),
            ("http://h.test", None),
            ("a", None),
        ] {
            assert_eq!(same_origin(uri, b"h.test"), expected, "{uri}");
        }
    }
}
