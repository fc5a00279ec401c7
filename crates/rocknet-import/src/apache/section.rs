//! Translates sections: `<Directory>`, `<Location>`, `<Files>` and their forms with regular expressions.

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::regex;
use crate::value::Value;

use super::context::ServerContext;
use super::path::prefix;
use super::php;
use super::proxy::ProxyDirectives;
use super::rewrite::RewriteBlock;
use super::setting::ApacheScope;

/// Translates a section of a host.
pub(super) fn translate(
    section: &Directive,
    site: &mut Site,
    proxies: &mut ProxyDirectives,
    rewrites: &mut RewriteBlock,
    context: &ServerContext,
) {
    let name = section.name.to_ascii_lowercase();
    let (argument, is_expression) = match section.words()[..] {
        ["~", argument] => (argument, true),
        [argument] => (argument, name.ends_with("match")),
        _ => ("", false),
    };
    match name.as_str() {
        "proxy" => return context.note_balancer(section, site),
        "requireall" | "requireany" | "requirenone" | "limit" | "limitexcept" => {
            // Access rules directly in an `.htaccess`.
            let mut scope = ApacheScope::new(context);
            scope.read(section);
            return merge(scope, &["/*".to_owned()], section, site);
        }
        _ => {}
    }
    let patterns = match (name.as_str(), is_expression) {
        ("directory", false) => directory(argument, site, context),
        ("location", false) => Some(prefix(argument)),
        ("files", false) if !argument.is_empty() => Some(vec![file(argument)]),
        ("location" | "locationmatch", true) => expression(section, argument, site),
        ("files" | "filesmatch", true) => {
            if is_dotfiles(argument) && is_denied(section) {
                let message = "names that begin with a dot are never served (404), except /.well-known";
                return site.unneeded(section, message);
            }
            let rest = argument.strip_prefix('^').map(|rest| format!("/{rest}"));
            let rest = rest.unwrap_or_else(|| argument.to_owned());
            expression(section, &rest, site)
        }
        _ => None,
    };
    if name.starts_with("files") && section.children().iter().any(|d| d.is("SetHandler")) {
        for directive in section.children() {
            if !php::handler(directive, site) {
                site.skip(directive, "write it into a route such as \"*.php\"");
            }
        }
        return;
    }
    let Some(patterns) = patterns else {
        let message = match restricts(section) {
            true => "THIS RESTRICTS ACCESS, and has no counterpart: write a route with `deny`",
            false => "the section has no counterpart: write a route",
        };
        return site.skip(section, message);
    };
    if name.starts_with("files") && is_denied(section) && section.children().iter().all(is_access) {
        // A rule is applied before routes, so that it holds in every folder.
        let keys = vec![("path", Value::texts(patterns)), ("respond", Value::Number(403))];
        return site.rule(section, keys);
    }
    let is_site = patterns.iter().any(|pattern| pattern == "/*");
    let mut scope = ApacheScope::new(context);
    for directive in section.children() {
        if directive.is("ProxyPass") {
            proxies.read_in(directive, argument);
        } else if directive.name.to_ascii_lowercase().starts_with("rewrite") {
            if !(is_site && rewrites.read(directive)) {
                scope.notes.skip(
                    directive,
                    "write a rule, [[site.\"…\".rule]], or `redirects` of the route",
                );
            }
        } else if is_site && php::handler(directive, site) || proxies.read(directive) {
            // The directive is stored in the site or in its proxies.
        } else if directive.block.is_some() && !is_access(directive) {
            if is_site {
                translate(directive, site, proxies, rewrites, context);
            } else {
                scope.notes.skip(
                    directive,
                    "nested sections are not translated: write a route of its own",
                );
            }
        } else {
            scope.read(directive);
        }
    }
    merge(scope, &patterns, section, site);
}

/// Adds the settings of a section to its routes, or to the site.
fn merge(scope: ApacheScope<'_>, patterns: &[String], section: &Directive, site: &mut Site) {
    let (settings, mut notes) = scope.finish();
    site.notes.append(&mut notes);
    if settings.is_empty() {
        return;
    }
    for pattern in patterns {
        site.route(pattern, section.line).merge(settings.clone());
    }
}

fn is_access(directive: &Directive) -> bool {
    let name = directive.name.to_ascii_lowercase();
    ["require", "limit", "order", "deny", "satisfy"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Returns the pattern of a folder below the root; `None` for other folders.
fn directory(argument: &str, site: &Site, context: &ServerContext) -> Option<Vec<String>> {
    let folder = context.expand(argument)?;
    let folder = folder.trim_end_matches('/');
    let Some(Value::Text(root)) = site.settings.get("root") else {
        return None;
    };
    let root = root.trim_end_matches('/');
    if folder == root {
        return Some(vec!["/*".to_owned()]);
    }
    let rest = folder.strip_prefix(root)?;
    (rest.starts_with('/') && !rest.contains(['*', '?', '['])).then(|| vec![format!("{rest}/*")])
}

/// Returns the pattern of a file name in any folder.
fn file(name: &str) -> String {
    if name.starts_with('*') {
        name.to_owned()
    } else {
        format!("*/{name}")
    }
}

fn expression(section: &Directive, expression: &str, site: &mut Site) -> Option<Vec<String>> {
    let found = regex::patterns(expression)?;
    if let Some(difference) = found.difference {
        site.differs(section, difference);
    }
    Some(found.patterns)
}

fn is_dotfiles(expression: &str) -> bool {
    expression.starts_with("^\\.")
}

fn is_denied(section: &Directive) -> bool {
    section.children().iter().any(|d| {
        d.is("Require") && d.argument(1).eq_ignore_ascii_case("denied") || d.is("Deny") && d.argument(1) == "all"
    })
}

/// Returns true if a section restricts access.
fn restricts(section: &Directive) -> bool {
    let is_open = |d: &Directive| d.is("Require") && d.argument(1).eq_ignore_ascii_case("granted");
    let names = ["Require", "Deny", "AuthType", "RequireAll", "RequireAny", "RequireNone"];
    section
        .children()
        .iter()
        .any(|d| names.iter().any(|name| d.is(name)) && !is_open(d))
}
