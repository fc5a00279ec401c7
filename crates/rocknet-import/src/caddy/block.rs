//! Translates the directives of a site or of a `handle` block.

use crate::directive::Directive;
use crate::document::{Notes, Site, restore};
use crate::settings::Settings;
use crate::value::Value;

use super::action;
use super::matcher;
use super::place::BlockPlace;
use super::proxy;
use super::setting::{basic_auth, header, log, root, try_files};

/// Directives of a site before they are translated.
#[derive(Default)]
pub(super) struct CaddyBlock<'a> {
    pub directives: Vec<&'a Directive>,
}

/// Returns the names of a `handle` block that matches nothing but the host.
pub(super) fn host_names(directive: &Directive, siblings: &[Directive]) -> Option<Vec<String>> {
    let name = directive.argument(0);
    if !name.starts_with('@') {
        return None;
    }
    let matcher = matcher::named(siblings).remove(name)?;
    let is_host = matcher.patterns.is_empty() && matcher.conditions.is_empty() && matcher.clients.is_none();
    let has_names = matcher.error.is_none() && is_host && !matcher.hosts.is_empty();
    has_names.then(|| matcher.hosts.iter().map(|host| host.to_ascii_lowercase()).collect())
}

/// Translates the directives of a block to a site of its own.
pub(super) fn translate(directives: &[Directive], site: &mut Site) {
    let block = CaddyBlock {
        directives: directives.iter().collect(),
    };
    block.translate(site);
}

impl CaddyBlock<'_> {
    /// Translates the directives to the settings of a site.
    pub fn translate(&self, site: &mut Site) {
        let owned: Vec<Directive> = self.directives.iter().map(|directive| (*directive).clone()).collect();
        let mut place = BlockPlace {
            patterns: vec!["/*".to_owned()],
            strip: None,
            named: matcher::named(&owned),
        };
        let mut content = BlockContent::default();
        // `handle` blocks inherit from the directives outside of them, and not from each other.
        let (blocks, plain): (Vec<&Directive>, Vec<&Directive>) = owned
            .iter()
            .partition(|directive| directive.is("handle") || directive.is("handle_path"));
        plain
            .iter()
            .for_each(|directive| one(directive, &mut place, site, &mut content));
        let base = site.settings.clone();
        let before: Vec<String> = site.routes.iter().map(|route| route.pattern.clone()).collect();
        blocks
            .iter()
            .for_each(|directive| one(directive, &mut place, site, &mut content));
        let root = site.settings.clone();
        let changed = differences(&root, &base);
        for route in &mut site.routes {
            if !before.contains(&route.pattern) {
                restore(&mut route.settings, &changed, &base);
            }
        }
        content.finish(site);
    }
}

/// Returns the settings of `root` that `base` does not have.
fn differences(root: &Settings, base: &Settings) -> Settings {
    let mut changed = Settings::default();
    for (key, setting) in root.in_order() {
        if base.get(key) != Some(&setting.value) && !key.contains('.') {
            changed.set(key, setting.value.clone(), setting.line);
        }
    }
    changed
}

/// Places whose files are served. Without `file_server`, Caddy does not serve the files of `root`.
#[derive(Default)]
pub(super) struct BlockContent {
    files: Vec<(String, usize)>,
    serves_all: bool,
}

impl BlockContent {
    fn finish(&self, site: &mut Site) {
        let has_handler = site.settings.has("php") || site.settings.has("proxy");
        if self.serves_all || has_handler || !site.settings.has("root") {
            return;
        }
        let Some(root) = site.settings.remove("root") else {
            return;
        };
        for (pattern, line) in &self.files {
            let route = site.route(pattern, *line);
            route.set_default("root", root.value.clone(), root.line);
        }
        if self.files.is_empty() {
            let directive = Directive::new("root", Vec::new(), root.line);
            site.skip(
                &directive,
                "without `file_server` or `php_fastcgi`, the root is not used",
            );
        }
    }
}

/// Translates one directive.
fn one(directive: &Directive, place: &mut BlockPlace, site: &mut Site, content: &mut BlockContent) {
    let line = directive.line;
    let (matcher, words) = matcher::split(directive, &place.named);
    if let Some(difference) = matcher.difference {
        site.differs(directive, difference);
    }
    if action::translate(directive, &matcher, &words, place, site) {
        return;
    }
    let name = directive.name.as_str();
    match (name, &words[..]) {
        (name, _) if name.starts_with('@') => return,
        ("encode" | "precompressed", _) => {
            return site.unneeded(directive, "compression (Brotli, Zstandard, gzip) is on by default");
        }
        ("uri", ["strip_prefix", prefix]) if !prefix.contains('{') => {
            place.strip = Some((*prefix).to_owned());
            return;
        }
        ("log", _) => return log(directive, site),
        ("import", _) => {
            return site.skip(
                directive,
                "files, nested snippets and arguments are not read: write the directives here",
            );
        }
        ("handle_errors", _) => {
            return site.skip(
                directive,
                "write `errors` with a page for each status: errors = { 404 = \"/404.html\" }",
            );
        }
        _ => {}
    }
    let is_restriction = matches!(name, "basic_auth" | "basicauth" | "forward_auth");
    let Some(patterns) = place.within(&matcher).filter(|_| matcher.is_path()) else {
        let reason = matcher.error.as_deref().unwrap_or("routes match paths only");
        let message = match is_restriction {
            true => format!("THIS RESTRICTS ACCESS, and was left out: {reason}"),
            false => format!("{reason}: write a route, or a rule with `rewrite` to a path of its own"),
        };
        return site.skip(directive, &message);
    };
    if matches!(name, "handle" | "handle_path" | "route") {
        return nested(directive, patterns, place, site, content);
    }
    let mut settings = Settings::default();
    let mut notes = Vec::new();
    match (name, &words[..]) {
        ("root", [folder]) if !folder.contains('{') => root(directive, folder, place, &mut settings, site),
        ("file_server", rest) => {
            let browses = rest.contains(&"browse") || directive.children().iter().any(|inner| inner.is("browse"));
            if browses {
                settings.set("browse", Value::Flag(true), line);
            }
            for inner in directive.children() {
                match (inner.name.as_str(), inner.words().as_slice()) {
                    ("browse" | "precompressed" | "disable_canonical_uris", _) => {}
                    ("root", [folder]) if !folder.contains('{') => root(inner, folder, place, &mut settings, site),
                    ("index", names) => settings.set("index", Value::texts(names.iter().copied()), inner.line),
                    ("hide", _) => site.skip(inner, "write a route with `deny`; names with a leading dot are hidden"),
                    _ => site.skip_unknown(inner),
                }
            }
            content.serves_all |= patterns.iter().any(|pattern| pattern == "/*");
            let has_root = site.settings.has("root") || settings.has("root") || site.has_root(&patterns);
            if content.serves_all && !has_root {
                settings.set("root", Value::text("."), line);
                site.differs(
                    directive,
                    "no `root` is named: the files of the folder of the configuration are served",
                );
            }
            content
                .files
                .extend(patterns.iter().map(|pattern| (pattern.clone(), line)));
        }
        ("php_fastcgi", [address, rest @ ..]) => {
            let address = proxy::unix(address).unwrap_or_else(|| (*address).to_owned());
            settings.set("php", Value::Text(address), line);
            if !rest.is_empty() {
                site.differs(directive, "`php` takes one address, the first of the list");
            }
            for inner in directive.children() {
                match (inner.name.as_str(), inner.words().as_slice()) {
                    ("root", [folder]) if !folder.contains('{') => root(inner, folder, place, &mut settings, site),
                    ("resolve_root_symlink", _) => {}
                    ("index", ["off"]) => settings.set("fallback", Value::Flag(false), inner.line),
                    _ => site.skip(inner, "see docs/php.md for the settings of PHP"),
                }
            }
        }
        ("reverse_proxy", upstreams) => {
            let translated = proxy::translate(directive, upstreams, &mut settings, &mut notes);
            if let Some(mut translated) = translated {
                if let Some(prefix) = &place.strip {
                    translated.set("strip", Value::text(prefix));
                }
                settings.set("proxy", translated.value(), line);
            }
        }
        ("try_files", paths) => try_files(directive, paths, &mut settings, site),
        ("header", words) => header(directive, words, &mut settings, site),
        ("basic_auth" | "basicauth", words) => basic_auth(directive, words, &mut settings, site),
        ("forward_auth", _) => {
            settings.close(line);
            let message = "requests are not authorized by another server, so `deny = \"all\"` closes the place; an \
                 application can do it: docs/access.md";
            site.skip(directive, message);
        }
        ("request_body", _) => {
            for inner in directive.children() {
                match crate::units::size(inner.argument(0)) {
                    Some(size) if inner.is("max_size") => {
                        settings.set_entry("limits", "body_size", Value::Text(size), inner.line);
                    }
                    _ => site.skip(inner, "write `limits`"),
                }
            }
        }
        _ => site.skip_unknown(directive),
    }
    site.notes.append(&mut notes);
    if settings.is_empty() {
        return;
    }
    for pattern in patterns {
        site.route(&pattern, line).merge(settings.clone());
    }
}

impl Site {
    /// Returns true if a route for one of these patterns has a root.
    fn has_root(&self, patterns: &[String]) -> bool {
        self.routes
            .iter()
            .any(|route| patterns.contains(&route.pattern) && route.settings.has("root"))
    }
}

/// Translates a block for paths.
fn nested(
    directive: &Directive,
    patterns: Vec<String>,
    place: &BlockPlace,
    site: &mut Site,
    content: &mut BlockContent,
) {
    let mut named = place.named.clone();
    named.extend(matcher::named(directive.children()));
    let strip = match directive.is("handle_path") {
        true => patterns
            .iter()
            .find_map(|pattern| pattern.strip_suffix("/*"))
            .map(str::to_owned),
        false => place.strip.clone(),
    };
    let mut inner = BlockPlace {
        patterns,
        strip: strip.filter(|strip| !strip.is_empty()),
        named,
    };
    // `uri strip_prefix` and `root` apply to the whole block, wherever they stand.
    let (first, rest): (Vec<&Directive>, Vec<&Directive>) = directive
        .children()
        .iter()
        .partition(|child| child.is("uri") || child.is("root"));
    for child in first.into_iter().chain(rest) {
        one(child, &mut inner, site, content);
    }
}
