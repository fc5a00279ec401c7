//! Resources of a page that are sent with it: pushed over HTTP/2, or announced by 103 (Early Hints).

use std::fmt::Write as _;

use rocknet_proto::fields::{KnownField, KnownFieldSet};
use rocknet_proto::method::Method;
use rocknet_proto::request::Request;
use rocknet_proto::semantics::{escape, link};
use rocknet_proto::status::Status;

use crate::response::FieldList;

/// Resources of one page.
#[derive(Debug, PartialEq, Eq)]
pub struct Preloads {
    /// Request targets of the resources, percent-encoded.
    pub targets: Box<[Box<[u8]>]>,
    /// Value of `Link` with the same resources.
    pub link: Box<str>,
}

/// Fields that a client sends if it has the page already, and most likely its resources too.
const CONDITIONAL: KnownFieldSet = KnownFieldSet::of(&[
    KnownField::IfMatch,
    KnownField::IfNoneMatch,
    KnownField::IfModifiedSince,
    KnownField::IfUnmodifiedSince,
    KnownField::IfRange,
    KnownField::Range,
]);

/// Maximum number of resources taken from the `Link` fields of one response. The configuration permits as many for one
/// page (`push`).
const MAX_LINKS: usize = 32;

/// Returns true if a request may be the client's first for a page, so that its resources are worth sending.
#[inline]
pub fn is_first_visit(request: &Request<'_>) -> bool {
    request.method == Method::Get && !request.fields.contains_any(CONDITIONAL)
}

/// Returns true if a response with this status contains the requested page, and not an error or a redirect.
#[inline]
pub fn is_page(status: Status) -> bool {
    status == Status::OK
}

impl Preloads {
    /// Prepares resources from decoded paths, as written in the configuration. Returns `None` without paths.
    pub fn new(paths: &[String]) -> Option<Preloads> {
        if paths.is_empty() {
            return None;
        }
        let mut link_value = String::new();
        let mut targets = Vec::with_capacity(paths.len());
        for path in paths {
            let mut target = Vec::with_capacity(path.len());
            escape::path(path.as_bytes(), &mut target);
            let separator = if targets.is_empty() { "" } else { ", " };
            let (text, kind) = (String::from_utf8_lossy(&target), destination(path));
            let _ = write!(link_value, "{separator}<{text}>; rel=preload; as={kind}");
            if matches!(kind, "font" | "fetch") {
                // Browsers load fonts and fetched data in CORS mode, and do not reuse a preload in another mode.
                link_value.push_str("; crossorigin");
            }
            targets.push(target.into_boxed_slice());
        }
        Some(Preloads {
            targets: targets.into(),
            link: link_value.into(),
        })
    }
}

/// Returns the targets that the `Link` fields of a response preload, except targets marked `nopush`. Only absolute
/// paths on the same host are returned, at most 32.
pub fn link_targets(fields: &FieldList) -> impl Iterator<Item = &[u8]> {
    fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("link"))
        .flat_map(|(_, value)| link::preloads(value.as_bytes()))
        .filter(|target| target.starts_with(b"/") && !target.starts_with(b"//"))
        .take(MAX_LINKS)
}

/// Returns the destination of a file (the parameter `as` of a preload) by its extension.
fn destination(path: &str) -> &'static str {
    let end = path.rsplit_once('.').map_or("", |(_, end)| end).to_ascii_lowercase();
    match end.as_str() {
        "css" => "style",
        "js" | "mjs" => "script",
        "woff2" | "woff" | "ttf" | "otf" => "font",
        "png" | "jpg" | "jpeg" | "gif" | "webp" | "avif" | "svg" | "ico" | "bmp" => "image",
        "vtt" => "track",
        "html" | "htm" => "document",
        _ => "fetch",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_the_destinations_of_files() {
        let paths = ["/a b.css", "/x/app.MJS", "/f.woff2", "/data", "/p.html"].map(str::to_owned);
        let preloads = Preloads::new(&paths).expect("some");
        assert_eq!(
            &*preloads.link,
            "</a%20b.css>; rel=preload; as=style, </x/app.MJS>; rel=preload; as=script, \
             </f.woff2>; rel=preload; as=font; crossorigin, </data>; rel=preload; as=fetch; crossorigin, \
             </p.html>; rel=preload; as=document"
        );
        let targets: Vec<&[u8]> = preloads.targets.iter().map(|target| &**target).collect();
        assert_eq!(targets[..2], [&b"/a%20b.css"[..], b"/x/app.MJS"]);
        assert_eq!(Preloads::new(&[]), None);
    }

    #[test]
    fn only_links_to_the_same_host_are_returned() {
        let mut fields = FieldList::default();
        fields.add("link", "</a.css>; rel=preload; as=style, <//evil.test/b>; rel=preload");
        fields.add(
            "Link",
            "<https://evil.test/c>; rel=preload, <d.js>; rel=preload, </e?f>; rel=preload",
        );
        fields.add("LINK", "</g>; rel=preload; nopush");
        let found: Vec<&[u8]> = link_targets(&fields).collect();
        assert_eq!(found, [&b"/a.css"[..], b"/e?f"]);
        let many = (0..100).fold(String::new(), |all, number| format!("{all}</{number}>; rel=preload,"));
        fields.add("Link", many);
        assert_eq!(link_targets(&fields).count(), MAX_LINKS);
    }
}
