//! Fields of the cache plugins for LiteSpeed, such as LiteSpeed Cache for WordPress.
//!
//! The plugins send `X-LiteSpeed-Cache-Control`, `-Tag`, `-Vary`, `-Purge` and `-Purge2` if a request has the field
//! [`ENABLED`]. These fields concern only the server, so clients do not get them.

use rocknet_handler::response::FieldList;
use rocknet_proto::request::Request;

use crate::policy::LITESPEED_CONTROL;
use crate::purge::{Purge, Selection};
use crate::vary::MAX_FIELDS;

/// Field of requests that enables the plugins, with its value.
pub const ENABLED: (&[u8], &[u8]) = (b"X-LSCACHE", b"on");

/// Cookie by which the plugins distinguish groups of visitors. All their responses vary by it.
const VARY_COOKIE: &str = "_lscache_vary";

/// Prefix of the fields that are removed from responses.
const PREFIX: &str = "X-LiteSpeed-";

/// Fields that demand purges. Plugins send the second one for files that they have generated, such as combined styles.
const PURGES: [&str; 2] = ["X-LiteSpeed-Purge", "X-LiteSpeed-Purge2"];

/// Maximum number of purges that one response may demand. Further ones are ignored.
const MAX_PURGES: usize = 256;

/// Returns the cookies by which a response varies. Stops above [`MAX_FIELDS`], because a response with so many cookies
/// is not stored.
pub fn vary_cookies(fields: &FieldList) -> Vec<String> {
    let mut cookies = Vec::new();
    if fields.value(LITESPEED_CONTROL).is_some() {
        cookies.push(VARY_COOKIE.to_owned());
    }
    let lines = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("X-LiteSpeed-Vary"));
    for element in lines.flat_map(|(_, value)| value.split(',')) {
        if cookies.len() > MAX_FIELDS {
            break;
        }
        if let Some(name) = element.trim().strip_prefix("cookie=")
            && !cookies.iter().any(|other| other == name)
        {
            cookies.push(name.to_owned());
        }
    }
    cookies
}

/// Returns the purges that a response demands within its site. `request`: its host is that of purged paths.
/// `is_secure`: true if it came over TLS.
pub fn purges(fields: &FieldList, site: &str, request: &Request<'_>, is_secure: bool) -> Vec<Purge> {
    let lines = fields
        .iter()
        .filter(|(name, _)| PURGES.iter().any(|own| name.eq_ignore_ascii_case(own)));
    let mut all = Vec::new();
    // Private and public purges are separated by semicolons. Nothing private is stored.
    for group in lines.flat_map(|(_, value)| value.split(';')) {
        let elements = || group.split(',').map(str::trim).filter(|element| !element.is_empty());
        if elements().next() == Some("private") {
            continue;
        }
        all.extend(elements().filter_map(|element| purge(element, site, request, is_secure)));
    }
    all.truncate(MAX_PURGES);
    all
}

/// Returns the purge of one element of `X-LiteSpeed-Purge`; `None` for a word that selects nothing.
fn purge(element: &str, site: &str, request: &Request<'_>, is_secure: bool) -> Option<Purge> {
    let of = |selection| Purge {
        site: Some(site.to_owned()),
        selection,
    };
    match element {
        "*" => Some(of(Selection::Everything)),
        "public" | "stale" => None,
        path if path.starts_with('/') => Some(Purge::of_target(site, is_secure, request.authority, path)),
        tag => Some(of(Selection::Tag(tag.strip_prefix("tag=").unwrap_or(tag).to_owned()))),
    }
}

/// Removes and returns the fields that concern only the server.
pub fn split_off(fields: &mut FieldList) -> FieldList {
    let is_own = |name: &str| {
        name.get(..PREFIX.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
    };
    let mut own = FieldList::default();
    for (name, value) in fields.iter().filter(|(name, _)| is_own(name)) {
        own.add(name, value);
    }
    if !own.is_empty() {
        fields.retain(|name| !is_own(name));
    }
    own
}

#[cfg(test)]
mod tests {
    use rocknet_proto::request::{OwnedRequest, Version};

    use super::*;

    fn fields(lines: &[(&str, &str)]) -> FieldList {
        let mut fields = FieldList::default();
        lines.iter().for_each(|(name, value)| fields.add(name, value));
        fields
    }

    #[test]
    fn purges_are_parsed() {
        let request = OwnedRequest::synthetic_get(Version::Http11, b"H.test", b"/", &[]);
        let url = |path: &str| Selection::Url {
            authority: "h.test".to_owned(),
            target: path.to_owned(),
            is_prefix: false,
        };
        let tag = |tag: &str| Selection::Tag(tag.to_owned());
        for (value, expected) in [
            ("*", vec![Selection::Everything]),
            ("public,*", vec![Selection::Everything]),
            ("/a, tag=b,c", vec![url("/a"), tag("b"), tag("c")]),
            ("public,stale,tag=a;private,tag=b,*", vec![tag("a")]),
            ("private,*", vec![]),
            (" , ", vec![]),
        ] {
            let lines = fields(&[("X-LiteSpeed-Purge", value)]);
            let purges = purges(&lines, "s", &request.view(), true);
            assert!(purges.iter().all(|purge| purge.site.as_deref() == Some("s")));
            let selections: Vec<_> = purges.into_iter().map(|purge| purge.selection).collect();
            assert_eq!(selections, expected, "{value}");
        }
    }

    #[test]
    fn both_fields_demand_purges() {
        let request = OwnedRequest::synthetic_get(Version::Http11, b"h", b"/", &[]);
        let lines = fields(&[("X-LiteSpeed-Purge", "tag=a"), ("x-litespeed-purge2", "public,tag=b")]);
        let purges = purges(&lines, "s", &request.view(), true);
        let tags = ["a", "b"].map(|tag| Selection::Tag(tag.to_owned()));
        assert_eq!(
            purges.into_iter().map(|purge| purge.selection).collect::<Vec<_>>(),
            tags
        );
    }

    #[test]
    fn the_number_of_purges_is_limited() {
        let request = OwnedRequest::synthetic_get(Version::Http11, b"h", b"/", &[]);
        let fields = fields(&[("X-LiteSpeed-Purge", &"tag=a,".repeat(2 * MAX_PURGES))]);
        assert_eq!(purges(&fields, "s", &request.view(), true).len(), MAX_PURGES);
    }

    #[test]
    fn the_number_of_cookies_is_limited() {
        let names: Vec<_> = (0..100).map(|number| format!("cookie={number}")).collect();
        let fields = fields(&[("X-LiteSpeed-Vary", &names.join(","))]);
        assert_eq!(vary_cookies(&fields).len(), MAX_FIELDS + 1);
    }

    #[test]
    fn cookies_are_found_and_fields_removed() {
        let mut fields = fields(&[
            ("X-LiteSpeed-Cache-Control", "public,max-age=1"),
            ("x-litespeed-vary", "cookie=a, cookie=_lscache_vary, value=b"),
            ("X-Other", "1"),
        ]);
        assert_eq!(vary_cookies(&fields), ["_lscache_vary", "a"]);
        assert_eq!(split_off(&mut fields).iter().count(), 2);
        assert_eq!(fields.iter().collect::<Vec<_>>(), [("X-Other", "1")]);
        assert!(vary_cookies(&fields).is_empty());
    }
}
