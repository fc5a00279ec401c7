//! Part of a site to which directives apply: the whole site, or a block such as `handle /a/*`.

use std::rc::Rc;

use crate::directive::Directive;

use super::matcher::{NamedMatchers, PathMatcher};

/// Options of the server and of the site on which directives depend.
#[derive(Default)]
pub(super) struct SiteOptions {
    /// Options of all caches.
    pub cache: Vec<Directive>,
    /// Networks of the global option `trusted_proxies`.
    pub trusted_proxies: Vec<String>,
    /// Names of request fields that only proxies of the site use, so that `proxy.headers` can set them.
    pub proxy_fields: Vec<String>,
}

/// Place of the directives that are translated: a site, or a block with a path.
#[derive(Clone)]
pub(super) struct BlockPlace {
    pub patterns: Vec<String>,
    /// Prefix that `handle_path` or `uri strip_prefix` removes from paths, if any.
    pub strip: Option<String>,
    /// Fields of `request_header` with their values, which proxies of the place send. An empty value removes a field.
    pub request_fields: Vec<(String, String)>,
    pub named: NamedMatchers,
    /// Names of the site.
    pub hosts: Vec<String>,
    /// Scheme of the requests of the site; `None` if both are served.
    pub scheme: Option<&'static str>,
    pub options: Rc<SiteOptions>,
}

impl BlockPlace {
    /// Returns true if the place is the whole site.
    pub fn is_site(&self) -> bool {
        self.patterns == ["/*"]
    }

    /// Returns the patterns of a matcher within this place. Returns `None` if not all patterns are inside. Also returns
    /// `None` for a matcher with paths in a block that removes a prefix, because there it sees only the rest of the
    /// path.
    pub fn within(&self, matcher: &PathMatcher) -> Option<Vec<String>> {
        if matcher.patterns.is_empty() {
            return Some(self.patterns.clone());
        }
        let prefixes: Vec<&str> = self
            .patterns
            .iter()
            .map(|pattern| pattern.trim_end_matches('*'))
            .collect();
        let is_inside = |pattern: &String| prefixes.iter().any(|prefix| pattern.starts_with(prefix));
        let is_inside = self.strip.is_none() && matcher.patterns.iter().all(is_inside);
        (self.is_site() || is_inside).then(|| matcher.patterns.clone())
    }
}
