//! Translates `ExpiresByType` to routes for the endings of the media type, and `ExpiresDefault` to a header field.

use crate::directive::Directive;
use crate::document::{Notes, Site, SiteRoute};
use crate::file_rules;
use crate::settings::Settings;
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

/// Directive `ExpiresByType`, with the maximum age of the responses in seconds.
pub(super) type TypeExpiry = (Directive, u64);

/// Temporary key for the age of `ExpiresDefault`. [`finish`] replaces it after all directives, because a later one can
/// add PHP.
const DEFAULT_AGE: &str = "expires";

/// Sets the age of `ExpiresDefault`, in seconds.
pub(super) fn set_default(age: u64, line: usize, settings: &mut Settings) {
    settings.set(DEFAULT_AGE, Value::Text(format!("max-age={age}")), line);
}

/// Moves the ages of `ExpiresDefault` to the field `Cache-Control` of the complete site and its routes. Where PHP runs,
/// the age is left out: `headers` also apply to the pages of scripts, which browsers and caches would keep. Routes
/// inherit `headers`, so the age of the site is left out even if PHP runs in a route only.
pub(super) fn finish(site: &mut Site) {
    let mut lines = Vec::new();
    let site_php = site.settings.get("php").cloned();
    // Routes inherit the field of the site, unless they have one of their own.
    let runs_scripts = |route: &SiteRoute| {
        let is_on = route.settings.get("php").is_some_and(|php| *php != Value::Flag(false));
        is_on && may_match_scripts(&route.pattern) && !route.settings.has_entry("headers", "Cache-Control")
    };
    let has_scripts = site_php.is_some() || site.routes.iter().any(runs_scripts);
    lines.extend(settle(&mut site.settings, has_scripts));
    for route in &mut site.routes {
        let php = route.settings.get("php").or(site_php.as_ref());
        let has_scripts = php.is_some_and(|php| *php != Value::Flag(false)) && may_match_scripts(&route.pattern);
        lines.extend(settle(&mut route.settings, has_scripts));
    }
    // A section may have several routes.
    lines.dedup();
    for line in lines {
        let directive = Directive::new("ExpiresDefault", Vec::new(), line);
        let message = "browsers would keep the responses of scripts too: write routes for the endings of files, such as \
                       \"*.css\", with `headers`";
        site.skip(&directive, message);
    }
}

/// Moves the age of `ExpiresDefault` to the field `Cache-Control`, unless `headers` has the field. With `has_scripts`,
/// leaves the age out, and returns its line.
fn settle(settings: &mut Settings, has_scripts: bool) -> Option<usize> {
    let age = settings.remove(DEFAULT_AGE)?;
    if settings.has_entry("headers", "Cache-Control") {
        return None;
    }
    if has_scripts {
        return Some(age.line);
    }
    settings.set_entry("headers", "Cache-Control", age.value, age.line);
    None
}

/// Returns true unless a pattern requires file extensions, such as `.jpg`, that no script of PHP has.
fn may_match_scripts(pattern: &str) -> bool {
    let is_script = |ending: &str| ending.eq_ignore_ascii_case("php");
    match pattern.strip_prefix('~') {
        Some(expression) => {
            file_rules::endings(expression).is_none_or(|all| all.iter().any(|ending| is_script(ending)))
        }
        None => {
            let name = pattern.rsplit('/').next().unwrap_or(pattern);
            let ending = name.rsplit_once('.').map(|(_, ending)| ending);
            ending.is_none_or(|ending| ending.contains('*') || is_script(ending))
        }
    }
}

/// Adds a route for each ending of the media types to a site. The paths of applications, such as `/wiki/Main`, usually
/// have no ending, so their responses keep their own fields.
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
