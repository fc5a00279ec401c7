//! Finds the targets with `rel=preload` in a Link field (RFC 8288), for server push.

use super::list::{parts, skip_whitespace, trim};

/// Returns the targets with `rel=preload` in a Link field, except those marked `nopush`.
pub fn preloads(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    parts(value, b',').filter_map(preload)
}

/// Returns the target of a link such as `<target>; rel="preload"; as=style`; `None` for other links and for links with
/// `nopush`. A target with a comma is not found, because the list is split at the comma.
fn preload(link: &[u8]) -> Option<&[u8]> {
    let rest = link.strip_prefix(b"<")?;
    let end = rest.iter().position(|&byte| byte == b'>')?;
    let (target, parameters) = (&rest[..end], skip_whitespace(&rest[end + 1..]));
    if !parameters.is_empty() && parameters[0] != b';' {
        return None;
    }
    let mut is_preload = None;
    for parameter in parts(parameters, b';') {
        // `value` keeps the equals sign, and is empty without one.
        let equals = parameter.iter().position(|&byte| byte == b'=');
        let (name, value) = parameter.split_at(equals.unwrap_or(parameter.len()));
        let name = trim(name);
        if name.eq_ignore_ascii_case(b"nopush") {
            return None;
        }
        // Only the first `rel` counts (RFC 8288 §3.3).
        if name.eq_ignore_ascii_case(b"rel") && is_preload.is_none() {
            let relations = unquoted(trim(value.get(1..).unwrap_or_default()));
            let mut relations = relations.split(|&byte| byte == b' ');
            is_preload = Some(relations.any(|relation| relation.eq_ignore_ascii_case(b"preload")));
        }
    }
    (is_preload == Some(true)).then_some(target)
}

/// Returns the value without its quotes. Escapes are not handled, because relation types contain no characters that
/// need them.
fn unquoted(value: &[u8]) -> &[u8] {
    value
        .strip_prefix(b"\"")
        .and_then(|value| value.strip_suffix(b"\""))
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_preload_targets() {
        // Field value, and the preload targets in it.
        let rows: &[(&str, &[&str])] = &[
            ("</a.css>; rel=preload", &["/a.css"]),
            ("</a.css>;rel=\"preload\";as=style", &["/a.css"]),
            ("</a.css> ; REL=PreLoad", &["/a.css"]),
            ("</a>; rel=\"prefetch preload\"", &["/a"]),
            (
                "</a>; rel=preload, <b>; rel=next, </c>; as=x; rel=preload",
                &["/a", "/c"],
            ),
            ("</a>; rel=preload; nopush", &[]),
            ("</a>; nopush; rel=preload, </b>; rel=preload", &["/b"]),
            ("</a>; rel=next; rel=preload", &[]),
            ("</a>; title=\"x; rel=preload\"", &[]),
            ("</a>; title=\"a, b\"; rel=preload", &["/a"]),
            ("<>; rel=preload", &[""]),
            ("</a", &[]),
            ("/a; rel=preload", &[]),
            ("</a> rel=preload", &[]),
            ("</a>; rel", &[]),
            ("</a>; rel=", &[]),
            ("</a>; rel=\"", &[]),
            ("", &[]),
            (",,;", &[]),
        ];
        for (value, expected) in rows {
            let found: Vec<_> = preloads(value.as_bytes()).collect();
            let expected: Vec<_> = expected.iter().map(|target| target.as_bytes()).collect();
            assert_eq!(found, expected, "{value}");
        }
    }
}
