//! Cookies that only guards need, such as the session of a login (`oidc`). Handlers get requests without these cookies.
//! Guards of further routes (`further_routes.rs`) get requests with them.

use std::sync::Arc;

use rocknet_handler::guard::Guard;
use rocknet_proto::fields::{Fields, KnownField};
use rocknet_proto::request::OwnedRequest;

/// Returns true if a request with these fields has a cookie that one of the guards hides.
pub(super) fn are_in(fields: Fields<'_>, guards: &[Arc<dyn Guard>]) -> bool {
    // Without guards, no line is split.
    let lines = fields.get_all(KnownField::Cookie).take_while(|_| !guards.is_empty());
    lines.flat_map(pairs).any(|pair| is_hidden(pair, guards))
}

/// Returns the request without the cookies that the guards hide. The bytes of all other cookies remain.
pub(super) fn removed(request: &OwnedRequest, guards: &[Arc<dyn Guard>]) -> OwnedRequest {
    let lines = request.view().fields.get_all(KnownField::Cookie);
    let lines: Vec<_> = lines
        .filter_map(|line| visible(line, |pair| is_hidden(pair, guards)))
        .collect();
    let added = lines.iter().map(|line| (&b"Cookie"[..], &line[..]));
    request.with_edited_fields(|name| name.eq_ignore_ascii_case(b"cookie"), added)
}

/// Returns the parts of a line of `Cookie` between the semicolons.
fn pairs(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b';')
}

fn is_hidden(pair: &[u8], guards: &[Arc<dyn Guard>]) -> bool {
    let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
    let name = name.trim_ascii();
    guards.iter().any(|guard| guard.hides_cookie(name))
}

/// Returns a line of `Cookie` without its hidden pairs; `None` if no cookie is left.
fn visible(line: &[u8], is_hidden: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let kept: Vec<_> = pairs(line).filter(|pair| !is_hidden(pair)).collect();
    let has_cookie = kept.iter().any(|pair| !pair.trim_ascii().is_empty());
    // The first pair that is left may follow a space.
    has_cookie.then(|| kept.join(&b';').trim_ascii().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_cookies_keep_their_bytes() {
        for (line, expected) in [
            ("a=1", Some("a=1")),
            ("h=1", None),
            ("a=1; h=1; b=2", Some("a=1; b=2")),
            ("h=1; a=1;b=\"x y\"", Some("a=1;b=\"x y\"")),
            ("a=1 ; h=1", Some("a=1")),
            ("h=1; h=2;", None),
            ("a=h; hh=1; b; =h;  c==\u{e9}", Some("a=h; hh=1; b; =h;  c==\u{e9}")),
            ("a=1;h;b=2", Some("a=1;b=2")),
            ("a=1; h =1; b=2;", Some("a=1; b=2;")),
        ] {
            let is_hidden = |pair: &[u8]| {
                let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
                name.trim_ascii() == b"h"
            };
            let found = visible(line.as_bytes(), is_hidden);
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{line}");
        }
    }
}
