//! Translates `ExpiresByType`: a route for the endings of the type.

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::value::Value;

/// Endings of files by media type.
const ENDINGS: [(&str, &[&str]); 28] = [
    ("text/css", &["css"]),
    ("text/javascript", &["js", "mjs"]),
    ("application/javascript", &["js", "mjs"]),
    ("application/x-javascript", &["js"]),
    ("text/html", &["html", "htm"]),
    ("text/plain", &["txt"]),
    ("text/xml", &["xml"]),
    ("application/xml", &["xml"]),
    ("application/json", &["json"]),
    ("application/ld+json", &["jsonld"]),
    ("application/manifest+json", &["webmanifest"]),
    ("application/pdf", &["pdf"]),
    ("application/wasm", &["wasm"]),
    ("image/gif", &["gif"]),
    ("image/png", &["png"]),
    ("image/jpeg", &["jpg", "jpeg"]),
    ("image/jpg", &["jpg"]),
    ("image/webp", &["webp"]),
    ("image/avif", &["avif"]),
    ("image/svg+xml", &["svg"]),
    ("image/x-icon", &["ico"]),
    ("image/vnd.microsoft.icon", &["ico"]),
    ("font/woff", &["woff"]),
    ("application/font-woff", &["woff"]),
    ("font/woff2", &["woff2"]),
    ("font/ttf", &["ttf"]),
    ("video/mp4", &["mp4"]),
    ("video/webm", &["webm"]),
];

/// Age of the responses of a media type, with the directive.
pub(super) type TypeExpiry = (Directive, u64);

/// Adds the ages of media types to a site. Responses of applications have no ending, so they keep their own fields.
pub(super) fn add(ages: &[TypeExpiry], site: &mut Site) {
    for (directive, age) in ages {
        let kind = directive.argument(0).to_ascii_lowercase();
        let found = ENDINGS.iter().find(|(known, _)| *known == kind);
        let Some((_, endings)) = found else {
            site.skip(
                directive,
                "write a route for the endings of the files, such as \"*.zip\", with `headers`",
            );
            continue;
        };
        if kind == "text/html" {
            site.differs(directive, "responses of applications keep their own Cache-Control");
        }
        let value = match age {
            0 => "no-cache".to_owned(),
            age => format!("max-age={age}"),
        };
        for ending in *endings {
            site.route(&format!("*.{ending}"), directive.line).set_entry(
                "headers",
                "Cache-Control",
                Value::text(&value),
                directive.line,
            );
        }
    }
}
