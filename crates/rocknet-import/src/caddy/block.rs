//! Translates the directives of a site or of a `handle` block.

mod errors;
mod files;

use std::rc::Rc;

use rocknet_config::template::Scope;

use crate::access::{access_of, note_shadowed, restrict_covered};
use crate::condition;
use crate::directive::Directive;
use crate::document::{Notes, RuleStage, Site, SiteRoute, note_inherited_fields, restore};
use crate::note::MAY_RESTRICT_ACCESS;
use crate::placeholder;
use crate::settings::Settings;
use crate::value::Value;

use self::errors::handle_errors;
use self::files::{BlockContent, hide, note_strip};
use super::action;
use super::cache;
use super::forward_auth;
use super::limit;
use super::matcher::{self, PathMatcher};
use super::options::CaddyOptions;
use super::place::{BlockPlace, SiteOptions};
use super::proxy;
use super::setting::{basic_auth, header, log, root, try_files};

/// Directives of a site before they are translated.
pub(super) struct CaddyBlock<'a> {
    pub directives: Vec<&'a Directive>,
    /// Names of the site.
    pub hosts: Vec<String>,
    /// Scheme of the requests of the site; `None` if both are served.
    pub scheme: Option<&'static str>,
    pub options: &'a CaddyOptions,
}

impl CaddyBlock<'_> {
    /// Translates the directives to the settings of a site.
    pub fn translate(&self, site: &mut Site) {
        let owned: Vec<Directive> = self.directives.iter().map(|directive| (*directive).clone()).collect();
        let mut place = BlockPlace {
            patterns: vec!["/*".to_owned()],
            strip: None,
            request_fields: Vec::new(),
            named: matcher::named(&owned),
            hosts: self.hosts.clone(),
            scheme: self.scheme,
            options: Rc::new(SiteOptions {
                cache: self.options.cache.clone(),
                trusted_proxies: self.options.trusted_proxies.clone(),
                proxy_fields: forward_auth::proxy_fields(&owned),
            }),
        };
        let mut content = BlockContent::default();
        // Caddy rewrites before it responds, wherever the directives stand. With this stage, `Site::order_rules` copies
        // a rule such as `respond /secret 403` to the end if a rewrite follows it. The copy applies to rewritten paths.
        // The original stays, so that the path that a client requests is refused, too.
        site.stage = RuleStage::Rewrite;
        // `handle` blocks inherit from the directives outside of them, and not from each other. A block such as
        // `handle @blocked { abort }` becomes rules, which precede all routes, so it counts as a directive outside.
        let becomes_rules =
            |directive: &Directive| only_acts(directive) && !matcher::split(directive, &place.named).0.is_path();
        let (blocks, plain): (Vec<&Directive>, Vec<&Directive>) = owned
            .iter()
            .partition(|directive| directive.is("handle_path") || directive.is("handle") && !becomes_rules(directive));
        // Rank in the order of translation. `uri` and fields of requests apply to the whole site, so they come first. A
        // response to every path applies only to the paths that no block handles, so it comes last.
        let rank = |directive: &Directive| match directive.name.as_str() {
            "uri" | "request_header" => 0,
            "forward_auth" if forward_auth::renames(directive) => 0,
            "respond" | "error" | "abort" if !directive.argument(0).starts_with(['@', '/']) => 2,
            _ => 1,
        };
        let (last, mut first): (Vec<&Directive>, Vec<&Directive>) =
            plain.into_iter().partition(|directive| rank(directive) == 2);
        first.sort_by_key(|directive| rank(directive));
        first
            .iter()
            .for_each(|directive| translate_directive(directive, &mut place, site, &mut content));
        // Result of the directives outside of the blocks: settings of the site, and access control of routes.
        let base = site.settings.clone();
        let before: Vec<(String, Settings)> = site
            .routes
            .iter()
            .map(|route| (route.pattern.clone(), access_of(&route.settings)))
            .collect();
        blocks
            .into_iter()
            .chain(last)
            .for_each(|directive| translate_directive(directive, &mut place, site, &mut content));
        // A block for every path, `handle { … }`, has added its settings to the site. In Caddy, other blocks do not
        // inherit them, so `restore` cancels them in the routes of these blocks.
        let root = site.settings.clone();
        let changed = differences(&root, &base);
        let is_block = |route: &&SiteRoute| !before.iter().any(|(pattern, _)| *pattern == route.pattern);
        let routes: Vec<Settings> = site
            .routes
            .iter()
            .filter(is_block)
            .map(|r| r.settings.clone())
            .collect();
        note_inherited_fields("header", (&root, &base), &routes.iter(), site);
        for route in &mut site.routes {
            if !before.iter().any(|(pattern, _)| *pattern == route.pattern) {
                restore(&mut route.settings, &changed, &base);
            }
        }
        content.finish(site);
        // Caddy applies access control, such as `basic_auth`, before the blocks.
        restrict_covered(site, &base, &before);
        note_shadowed(site);
        site.order_rules();
    }
}

/// Returns the settings of `root` that differ from those of `base`, without the entries of maps, whose keys contain a
/// dot. A route cannot cancel an entry of a map; [`note_inherited_fields`] reports those of `headers`.
fn differences(root: &Settings, base: &Settings) -> Settings {
    let mut changed = Settings::default();
    for (key, setting) in root.in_order() {
        if base.get(key) != Some(&setting.value) && !key.contains('.') {
            changed.set(key, setting.value.clone(), setting.line);
        }
    }
    changed
}

/// Translates one directive.
fn translate_directive(directive: &Directive, place: &mut BlockPlace, site: &mut Site, content: &mut BlockContent) {
    let line = directive.line;
    let (mut matcher, words) = matcher::split(directive, &place.named);
    if let Some(difference) = matcher.difference {
        match restricts(directive) {
            true => site.weakens(directive, difference),
            false => site.differs(directive, difference),
        }
    }
    // In Caddy, the matcher `/api*` also restricts longer names, such as `/api2`.
    if restricts(directive) {
        matcher.patterns.append(&mut matcher.beginnings);
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
        ("uri", ["strip_prefix", prefix]) if !prefix.contains('{') && matcher == PathMatcher::default() => {
            place.strip = Some((*prefix).to_owned());
            return;
        }
        ("uri", ["strip_suffix", suffix])
            if !suffix.contains('{') && matcher == PathMatcher::default() && place.is_site() =>
        {
            let keys = vec![
                ("path", Value::Text(format!("~^/(.*){}$", condition::escaped(suffix)))),
                ("rewrite", Value::text("/{1}")),
            ];
            return site.rule(directive, keys);
        }
        ("request_header", [name]) if name.starts_with('-') && matcher == PathMatcher::default() => {
            return place.request_fields.push((name[1..].to_owned(), String::new()));
        }
        ("request_header", [name, value])
            if !name.starts_with(['+', '-', '?'])
                && matcher == PathMatcher::default()
                && let Some(value) = placeholder::from_caddy(value, Scope::Request) =>
        {
            return place.request_fields.push(((*name).to_owned(), value));
        }
        ("log", _) => return log(directive, site),
        ("import", _) => {
            let message = format!("{MAY_RESTRICT_ACCESS}: the file was not read, or there is no such snippet");
            return site.skip(directive, &message);
        }
        ("handle_errors", statuses) => return handle_errors(directive, statuses, site),
        _ => {}
    }
    // The actions in a block such as `handle @blocked { abort }` become rules with the conditions of its matcher.
    if matches!(name, "handle" | "route") && !matcher.is_path() && only_acts(directive) {
        for child in directive.children() {
            action::translate(child, &matcher, &child.words(), place, site);
        }
        return;
    }
    let Some(patterns) = place.within(&matcher).filter(|_| matcher.is_path()) else {
        let reason = matcher.error.as_deref().unwrap_or("routes match paths only");
        if restricts(directive) {
            return site.skip_restriction(directive, &format!("it was left out: {reason}"));
        }
        let message = format!(
            "{reason}: write a route for a new path, such as `/new/*`, and a rule that rewrites these requests to it"
        );
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
                    ("hide", names) => hide(inner, names, &patterns, site),
                    _ => site.skip_unknown(inner),
                }
            }
            note_strip(directive, &patterns, place, &settings, site);
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
            note_strip(directive, &patterns, place, &settings, site);
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
                for (name, value) in &place.request_fields {
                    translated.headers.entry(name.clone()).or_insert_with(|| value.clone());
                }
                settings.set("proxy", translated.value(), line);
            } else {
                settings.close(line);
                site.skip(
                    directive,
                    "no upstream is left, so `deny = \"all\"` denies every client here: write `proxy`",
                );
            }
        }
        ("push", [file]) if file.starts_with('/') && !file.contains('{') => {
            // With the pattern `/*`, every request of the site would push the file, even the one for the file itself.
            let pages: Vec<&str> = patterns
                .iter()
                .map(|pattern| if pattern == "/*" { "/" } else { pattern })
                .collect();
            if pages.contains(&"/") {
                site.differs(directive, "the file is pushed with the front page");
            }
            for page in pages {
                site.settings.set_entry("push", page, Value::text(*file), line);
            }
        }
        ("try_files", paths) => try_files(directive, paths, &mut settings, site),
        ("header", words) => header(directive, words, &mut settings, site),
        // In Caddy, both the passwords and the authorization service have to admit a request.
        ("basic_auth" | "basicauth", _) if forward_auth::has_service(site) => {
            settings.close(line);
            let message = "`auth` takes passwords or an authorization service, not both, so `deny = \"all\"` denies \
                 every client here: write `auth`";
            site.skip(directive, message);
        }
        ("forward_auth", upstreams) => match forward_auth::translate(directive, upstreams, site, &place.options) {
            Ok(mut auth) => {
                notes.append(&mut auth.notes);
                place.request_fields.append(&mut auth.renamed);
                settings.set("auth", auth.value, line);
            }
            Err(message) => {
                settings.close(line);
                site.skip(directive, message);
            }
        },
        ("basic_auth" | "basicauth", words) => basic_auth(directive, words, &mut settings, site),
        // Directives of the plugins caddy-security and caddy-jwt.
        ("authorize" | "authenticate" | "jwtauth", _) => {
            settings.close(line);
            site.skip(directive, forward_auth::NOT_TRANSLATED);
        }
        ("cache", []) => cache::translate(directive, &place.options.cache, &mut settings, &mut notes),
        ("rate_limit", []) => limit::translate(directive, &mut settings, &mut notes),
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

/// Returns true if a block consists of actions without matchers, such as `abort`.
fn only_acts(block: &Directive) -> bool {
    let acts = |child: &Directive| {
        let is_action = matches!(child.name.as_str(), "respond" | "error" | "abort" | "redir");
        is_action && !child.argument(0).starts_with(['@', '/', '*'])
    };
    !block.children().is_empty() && block.children().iter().all(acts)
}

/// Returns true if a directive, or one in its block, restricts access.
pub(super) fn restricts(directive: &Directive) -> bool {
    let is_named = matches!(
        directive.name.as_str(),
        "basic_auth" | "basicauth" | "forward_auth" | "authorize" | "authenticate" | "jwtauth" | "hide"
    );
    is_named || action::refuses(directive, &directive.words()) || directive.children().iter().any(restricts)
}

/// Translates a `handle`, `handle_path` or `route` block for paths.
fn nested(
    directive: &Directive,
    patterns: Vec<String>,
    place: &BlockPlace,
    site: &mut Site,
    content: &mut BlockContent,
) {
    let mut named = place.named.clone();
    named.extend(matcher::named(directive.children()));
    // `handle_path /app/* { … }` removes `/app` from the path.
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
        request_fields: place.request_fields.clone(),
        named,
        hosts: place.hosts.clone(),
        scheme: place.scheme,
        options: Rc::clone(&place.options),
    };
    // `uri strip_prefix`, `root` and fields of requests apply to the whole block, wherever they stand. A `forward_auth`
    // that renames fields sets fields of requests, too.
    let is_first = |child: &&Directive| match child.name.as_str() {
        "uri" | "root" | "request_header" => true,
        name => name == "forward_auth" && forward_auth::renames(child),
    };
    let (first, rest): (Vec<&Directive>, Vec<&Directive>) = directive.children().iter().partition(is_first);
    for child in first.into_iter().chain(rest) {
        translate_directive(child, &mut inner, site, content);
    }
}
