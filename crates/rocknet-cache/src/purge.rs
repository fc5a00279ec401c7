//! Purges: demands of an operator or application to drop the stored responses for some resources.

use std::collections::HashMap;

use crate::key::{self, KeyParts};

/// Resources to drop.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Purge {
    /// Name of the site; `None`: all sites.
    pub site: Option<String>,
    /// Selection among the resources of the site.
    pub selection: Selection,
}

/// Selection of resources.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Selection {
    /// All resources.
    Everything,
    /// Resources of one URL, or of all URLs that begin with it. The scheme makes no difference, because behind a proxy
    /// that terminates TLS, requests for `https` arrive as `http`.
    Url {
        /// Host and port in lower case.
        authority: String,
        /// Path and query.
        target: String,
        /// True: all targets that begin with `target`.
        is_prefix: bool,
    },
    /// Resources of which a response has this tag.
    Tag(String),
}

impl Purge {
    /// Returns the purge of everything.
    pub fn everything() -> Purge {
        Purge {
            site: None,
            selection: Selection::Everything,
        }
    }

    /// Returns the purge of a tag.
    pub fn tag(tag: &str) -> Purge {
        Purge {
            site: None,
            selection: Selection::Tag(tag.to_owned()),
        }
    }

    /// Returns the purge of a URL, such as `https://example.com/page?a=b`. `is_prefix`: also of all URLs that begin
    /// with it. Returns `None` if the text is not a URL with `http` or `https`.
    pub fn url(url: &str, is_prefix: bool) -> Option<Purge> {
        let (scheme, rest) = url.split_once("://")?;
        let default_port = match scheme {
            "https" => ":443",
            "http" => ":80",
            _ => return None,
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.is_empty() || authority.contains(['@', ' ']) || target.starts_with('?') {
            return None;
        }
        let authority = authority.strip_suffix(default_port).unwrap_or(authority);
        Some(Purge {
            site: None,
            selection: Selection::Url {
                authority: authority.to_ascii_lowercase(),
                target: if target.is_empty() { "/" } else { target }.to_owned(),
                is_prefix,
            },
        })
    }

    /// Returns the purge of a URL of a site. `authority`: that of a request over `https`, if `is_secure` is true.
    /// `target`: path and query.
    pub(crate) fn of_target(site: &str, is_secure: bool, authority: &[u8], target: &str) -> Purge {
        // Keys have no default port.
        let authority = key::without_default_port(authority, is_secure);
        Purge {
            site: Some(site.to_owned()),
            selection: Selection::Url {
                authority: String::from_utf8_lossy(authority).to_ascii_lowercase(),
                target: target.to_owned(),
                is_prefix: false,
            },
        }
    }

    /// Returns true if the key of a resource may be selected. The tags of its responses are not known.
    pub(crate) fn may_select(&self, key: &KeyParts<'_>) -> bool {
        if self.site.as_ref().is_some_and(|site| site.as_bytes() != key.site) {
            return false;
        }
        match &self.selection {
            Selection::Everything | Selection::Tag(_) => true,
            // A key made by a template of the configuration does not name the URL, so it may belong to any URL. For a
            // stored response, callers replace the parts of such a key by the URL of the response.
            Selection::Url { .. } if key.is_template => true,
            Selection::Url {
                authority,
                target,
                is_prefix,
            } => {
                // The query of the purge does not count for a response whose URL is known without its query.
                let target = match key.is_path {
                    true => target.split('?').next().unwrap_or_default(),
                    false => target,
                };
                authority.as_bytes() == key.authority
                    && match is_prefix {
                        true => key.target.starts_with(target.as_bytes()),
                        false => key.target == target.as_bytes(),
                    }
            }
        }
    }

    /// Returns true if a resource is selected. `key`: parts of its key; if a template has made the key, with the URL of
    /// the response ([`KeyParts::with_url`]). `tags`: the tags of its responses.
    pub(crate) fn selects(&self, key: &KeyParts<'_>, tags: &[Box<str>]) -> bool {
        let has_tag = match &self.selection {
            Selection::Tag(tag) => tags.iter().any(|other| **other == **tag),
            _ => true,
        };
        has_tag && self.may_select(key)
    }
}

/// Several purges, arranged so that one scan of the store finds the resources that any of them selects.
pub(crate) struct PurgeSet<'p> {
    /// Purges of everything and of prefixes.
    scanned: Vec<&'p Purge>,
    /// Purges by the target of their URL.
    targets: HashMap<&'p [u8], Vec<&'p Purge>>,
    /// Purges by their tag.
    tags: HashMap<&'p str, Vec<&'p Purge>>,
}

impl<'p> PurgeSet<'p> {
    /// Returns the set of some purges.
    pub fn of(purges: &'p [Purge]) -> PurgeSet<'p> {
        let mut set = PurgeSet {
            scanned: Vec::new(),
            targets: HashMap::new(),
            tags: HashMap::new(),
        };
        for purge in purges {
            match &purge.selection {
                Selection::Tag(tag) => set.tags.entry(tag).or_default().push(purge),
                Selection::Url {
                    target,
                    is_prefix: false,
                    ..
                } => set.targets.entry(target.as_bytes()).or_default().push(purge),
                _ => set.scanned.push(purge),
            }
        }
        set
    }

    /// Returns true if the key of a resource may be selected. The tags of its responses are not known.
    pub fn may_select(&self, key: &KeyParts<'_>) -> bool {
        let has_urls = key.is_template && !self.targets.is_empty();
        let is_tagged = || self.tags.values().flatten().any(|purge| purge.may_select(key));
        has_urls || self.selects_key(key) || is_tagged()
    }

    /// Returns true if a resource is selected. `key` and `tags`: as for [`Purge::selects`].
    pub fn selects<'t>(&self, key: &KeyParts<'_>, mut tags: impl Iterator<Item = &'t str>) -> bool {
        let has_tag = |tag: &str| {
            let purges = self.tags.get(tag).into_iter().flatten();
            purges.into_iter().any(|purge| purge.may_select(key))
        };
        self.selects_key(key) || !self.tags.is_empty() && tags.any(has_tag)
    }

    fn selects_key(&self, key: &KeyParts<'_>) -> bool {
        // A path is compared with all targets, because the table has them with their queries.
        if key.is_path && self.targets.values().flatten().any(|purge| purge.may_select(key)) {
            return true;
        }
        let at_target = self.targets.get(key.target).into_iter().flatten();
        self.scanned.iter().chain(at_target).any(|purge| purge.may_select(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        let parts = |url| match Purge::url(url, false)?.selection {
            Selection::Url { authority, target, .. } => Some((authority, target)),
            _ => None,
        };
        for (url, expected) in [
            ("https://Example.com", Some(("example.com", "/"))),
            ("http://example.com:80/a?b#c", Some(("example.com", "/a?b"))),
            ("http://example.com:443/", Some(("example.com:443", "/"))),
            ("https://[::1]:8443/A", Some(("[::1]:8443", "/A"))),
            ("example.com/", None),
            ("ftp://example.com/", None),
            ("https:///a", None),
            ("https://a@b/", None),
            ("https://a?b", None),
        ] {
            let expected = expected.map(|(host, target)| (host.to_owned(), target.to_owned()));
            assert_eq!(parts(url), expected, "{url}");
        }
    }

    #[test]
    fn only_the_default_port_of_the_scheme_is_left_out() {
        for (authority, is_secure, expected) in [
            ("H.test", true, "h.test"),
            ("h.test:443", true, "h.test"),
            ("h.test:80", true, "h.test:80"),
            ("h.test:80", false, "h.test"),
            ("h.test:443", false, "h.test:443"),
            ("h.test:80:80", false, "h.test:80"),
        ] {
            let purge = Purge::of_target("s", is_secure, authority.as_bytes(), "/");
            let Selection::Url { authority: found, .. } = purge.selection else {
                panic!("no URL");
            };
            assert_eq!(found, expected, "{authority} {is_secure}");
        }
    }

    #[test]
    fn keys_are_selected_by_their_parts() {
        let of = |purge: Option<Purge>, site: Option<&str>| Purge {
            site: site.map(str::to_owned),
            ..purge.expect("a purge")
        };
        let key = KeyParts {
            site: b"s",
            authority: b"h",
            target: b"/a/b?c",
            is_template: false,
            is_path: false,
        };
        for (purge, expected) in [
            (of(Some(Purge::everything()), None), true),
            (of(Some(Purge::everything()), Some("s")), true),
            (of(Some(Purge::everything()), Some("t")), false),
            (of(Purge::url("https://h/a/b?c", false), None), true),
            (of(Purge::url("https://h/a/b", false), None), false),
            (of(Purge::url("https://h/a/b", true), None), true),
            (of(Purge::url("https://h/b", true), None), false),
            (of(Purge::url("http://h/a/b?c", false), None), true),
            (of(Purge::url("https://i/a/b?c", false), None), false),
            (of(Some(Purge::tag("x")), None), true),
        ] {
            assert_eq!(purge.may_select(&key), expected, "{purge:?}");
        }
    }
}
