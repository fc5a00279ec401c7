//! Translates sections: `<Directory>`, `<Location>`, `<Files>` and their forms with regular expressions.

use crate::condition;
use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::file_rules::refusal;
use crate::regex;
use crate::value::Value;

use super::alias;
use super::context::ServerContext;
use super::dot_names::{self, without_dot_names, without_look_ahead};
use super::expires;
use super::expression::of_name;
use super::forwarding::Forwarding;
use super::handler::{self, HandledFiles, NamedFiles, PhpEffect, ScriptRunners};
use super::inherit;
use super::limit;
use super::path::prefix;
use super::pcre::{alternatives, normalized};
use super::php;
use super::proxy::ProxyDirectives;
use super::redirect;
use super::rewrite::{self, RewriteBlock};
use super::setting::ApacheScope;

/// Expressions of sections distinguish upper and lower case, unless they contain `(?i)`.
const IGNORES_CASE: bool = false;

/// Translates a section of a host. `runners`: the directives of the host that run scripts.
pub(super) fn translate(
    section: &Directive,
    site: &mut Site,
    proxies: &mut ProxyDirectives,
    rewrites: &mut RewriteBlock,
    (context, runners): (&ServerContext, &ScriptRunners),
) {
    let name = section.name.to_ascii_lowercase();
    // `<Files ~ "\.bak$">` and `<FilesMatch "\.bak$">` have an expression.
    let (argument, is_expression) = match section.words()[..] {
        ["~", argument] => (argument, true),
        [argument] => (argument, name.ends_with("match")),
        _ => ("", false),
    };
    if name == "proxy" {
        return context.note_balancer(section, site);
    }
    let is_path = is_expression && matches!(name.as_str(), "location" | "locationmatch" | "directory")
        || name == "directorymatch";
    if is_path && is_denied(section) && refuse_paths(section, argument, site, proxies.forwarding) {
        return;
    }
    let patterns = match (name.as_str(), is_expression) {
        ("files", false) if is_denied(section) && argument.starts_with('.') && !proxies.forwarding.reaches_names() => {
            return site.unneeded(section, NEVER_SERVED);
        }
        ("directory", false) => directory(argument, site, context),
        ("location", false) => Some(prefix(argument)),
        ("files", false) if !argument.is_empty() => Some(vec![file(argument)]),
        ("location" | "locationmatch", true) => dot_names::patterns(&normalized(argument), IGNORES_CASE),
        ("files" | "filesmatch", true) => {
            let Some(expression) = names(section, &normalized(argument), proxies.forwarding) else {
                return site.unneeded(section, NEVER_SERVED);
            };
            // In a path, a name that begins at `^` follows a slash.
            let rest = expression.strip_prefix('^').map(|rest| format!("/{rest}"));
            exact(rest.as_deref().unwrap_or(&expression)).or_else(|| Some(vec![of_name(&expression, "/")?]))
        }
        _ => None,
    };
    // `<FilesMatch "\.php$">` with `SetHandler` turns PHP on or off, for the site or for names. Other directives in it
    // get a note.
    let selects = |d: &Directive| handler::runs(d) || d.is("SetHandler") && handler::disables(d);
    if name.starts_with("files") && section.children().iter().any(selects) {
        let expression = name_expression(section).map(|expression| normalized(&expression));
        let files = NamedFiles::new(&expression.unwrap_or_default(), patterns.unwrap_or_default(), runners);
        let files = HandledFiles::Named(files);
        for directive in section.children() {
            match handler::translate(directive, &files, site) {
                PhpEffect::Set(php) => site.settings.set("php", php, directive.line),
                PhpEffect::Done => {}
                PhpEffect::Other => skip_inner(directive, "write it into a route such as \"*.php\"", site),
            }
        }
        return;
    }
    let Some(mut patterns) = patterns else {
        return skip(section, site);
    };
    // A `ProxyPass` in a section is for paths that begin with the argument of the section. Apache does not evaluate an
    // expression there, so the `ProxyPass` only has an effect if the expression is plain text, such as `/api`.
    let has_path = !is_expression || name.starts_with("location") && is_plain_path(argument);
    if is_expression && has_path && section.children().iter().any(|d| d.is("ProxyPass")) {
        // The route of the proxy takes precedence over that of the expression, so it gets the settings, too.
        let more: Vec<String> = prefix(argument)
            .into_iter()
            .filter(|pattern| !patterns.contains(pattern))
            .collect();
        patterns.extend(more);
    }
    if name.starts_with("files") && is_denied(section) && section.children().iter().all(is_access) {
        // A rule is applied before routes, so it holds in every folder.
        let mut keys = vec![("path", Value::texts(patterns))];
        keys.extend(refusal(403));
        return site.rule(section, keys);
    }
    let is_site = patterns.iter().any(|pattern| pattern == "/*");
    if name == "directory" && !is_site {
        proxies.folders.extend(patterns.iter().cloned());
    }
    let files = match name_expression(section).filter(|_| name.starts_with("files")) {
        Some(expression) => HandledFiles::Named(NamedFiles::new(&normalized(&expression), patterns.clone(), runners)),
        None => HandledFiles::Folder(&patterns),
    };
    let mut scope = ApacheScope::new(context);
    for directive in section.children() {
        // For a part of the site, `ProxyPassMatch` has no counterpart: `scope` notes it.
        let effect = match is_site || !directive.is("ProxyPassMatch") {
            true => handler::translate(directive, &files, site),
            false => PhpEffect::Other,
        };
        if let PhpEffect::Set(php) = effect {
            scope.settings.set("php", php, directive.line);
        } else if let PhpEffect::Done = effect {
            // The effect is stored in the site.
        } else if directive.is("ProxyPass") || directive.is("ProxyPassReverse") {
            match has_path {
                true => proxies.read_in(directive, argument),
                false => scope.notes.skip(
                    directive,
                    "Apache takes the expression of the section as a path: write a route with `proxy`",
                ),
            }
        } else if directive.name.to_ascii_lowercase().starts_with("rewrite") {
            let is_read = is_site && rewrites.read_in_section(directive);
            if !is_read {
                let message = "write a rule, [[site.\"…\".rule]], or `redirects` of the route";
                match rewrite::refuses(directive) {
                    true => scope.notes.skip_restriction(directive, message),
                    false => scope.notes.skip(directive, message),
                }
            }
        } else if limit::translate(directive, &patterns, site) || redirect::refusal(directive, &patterns, site) {
            // The rule is stored in the site.
        } else if directive.is("SSLRequireSSL") {
            let mut keys = vec![
                ("path", Value::texts(patterns.iter().cloned())),
                ("scheme", Value::text("http")),
            ];
            keys.extend(refusal(403));
            site.rule(directive, keys);
        } else if proxies.read(directive) {
            // The directive is stored in the proxies.
        } else if directive.block.is_some() && !is_access(directive) {
            if is_site {
                // A section in one for the whole site applies like a section of the host.
                translate(directive, site, proxies, rewrites, (context, runners));
            } else {
                nested(directive, &patterns, &mut scope, site, (proxies.forwarding, runners));
            }
        } else {
            scope.read(directive);
        }
    }
    merge(scope, &patterns, section, site);
}

/// Returns true if an expression has no operators and is the beginning of a path. A dot is accepted, because it also
/// matches a dot.
fn is_plain_path(expression: &str) -> bool {
    let is_operator = |c: char| r"^$*+?()[]{}|\".contains(c);
    expression.starts_with('/') && !expression.contains(is_operator)
}

/// Adds the settings of a section to its routes, or to the site.
fn merge(mut scope: ApacheScope<'_>, patterns: &[String], section: &Directive, site: &mut Site) {
    let is_site = patterns.iter().any(|pattern| pattern == "/*");
    let by_type = scope.take_expiry();
    let (mut settings, mut notes, decides_access) = scope.finish();
    site.notes.append(&mut notes);
    if is_site {
        expires::add(&by_type, site);
    } else {
        if !by_type.is_empty() {
            site.skip(section, "`ExpiresByType` of a folder: write a route with `headers`");
        }
        php::drop_settings(section, &mut settings, site);
    }
    if settings.is_empty() && !decides_access {
        return;
    }
    for pattern in patterns {
        inherit::add(site, pattern, section.line, &settings, decides_access);
    }
}

/// Notes that a directive of a section has no counterpart.
fn skip_inner(directive: &Directive, message: &str, notes: &mut dyn Notes) {
    match is_access(directive) && !is_granted(directive) {
        true => notes.skip_restriction(directive, message),
        false => notes.skip(directive, message),
    }
}

/// Notes that a section has no counterpart.
pub(super) fn skip(section: &Directive, notes: &mut dyn Notes) {
    match restricts(section) {
        true => notes.skip_restriction(section, "the section has no counterpart: write a route with `deny`"),
        false => notes.skip(section, "the section has no counterpart: write a route"),
    }
}

/// Translates a section in another one, such as `<Files>` in `<Directory "/var/www/a">`. `folders`: patterns of the
/// outer section, such as `/a/*`.
fn nested(
    directive: &Directive,
    folders: &[String],
    scope: &mut ApacheScope<'_>,
    site: &mut Site,
    (forwarding, runners): (Forwarding, &ScriptRunners),
) {
    let is_files = directive.is("Files") || directive.is("FilesMatch");
    let children = directive.children();
    // Paths of the folders, with a slash at their end; `None` if one of the patterns is not a prefix.
    let prefixes: Option<Vec<&str>> = folders
        .iter()
        .filter(|folder| folder.contains('*'))
        .map(|folder| folder.strip_suffix('*').filter(|prefix| !prefix.contains(['*', '~'])))
        .collect();
    // Patterns for the files below the folders whose names match an expression.
    let below = |expression: &str| -> Option<Vec<String>> {
        let prefixes = prefixes.iter().flatten();
        prefixes.map(|prefix| of_name(expression, prefix)).collect()
    };
    let name = name_expression(directive).filter(|_| is_files);
    if let Some(name) = &name
        && children.iter().any(|d| handler::runs(d) || handler::disables(d))
    {
        let paths = below(name).filter(|_| prefixes.is_some());
        let files = HandledFiles::Named(NamedFiles::new(&normalized(name), paths.unwrap_or_default(), runners));
        for child in children {
            match handler::translate(child, &files, site) {
                PhpEffect::Set(php) => scope.settings.set("php", php, child.line),
                PhpEffect::Done => {}
                PhpEffect::Other => skip_inner(child, "nested sections are not translated", &mut scope.notes),
            }
        }
        return;
    }
    let expression = name.filter(|_| is_denied(directive));
    let expression = match expression.map(|expression| names(directive, &expression, forwarding)) {
        Some(None) => return scope.notes.unneeded(directive, NEVER_SERVED),
        Some(kept) => kept,
        None => None,
    };
    let paths = expression.and_then(|expression| below(&expression).filter(|_| prefixes.is_some()));
    match paths {
        Some(paths) => {
            let mut keys = vec![("path", Value::texts(paths))];
            keys.extend(refusal(403));
            site.rule(directive, keys);
        }
        _ if restricts(directive) => scope.notes.skip_restriction(
            directive,
            "nested sections are not translated: write a route with `deny`",
        ),
        _ => scope.notes.skip(
            directive,
            "nested sections are not translated: write a route of its own",
        ),
    }
}

/// Message for refusals that RockNet makes by itself.
const NEVER_SERVED: &str = "names that begin with a dot are never served (404), except /.well-known";

/// Returns the expression of a section for names of files. If the section denies every client, the expression loses the
/// names with a leading dot, because RockNet never serves such files; `None` if there are no other names. It keeps them
/// if `forwarding` shows that requests for such names may reach an upstream or another path, so that the refusal is
/// needed.
fn names(section: &Directive, expression: &str, forwarding: Forwarding) -> Option<String> {
    match is_denied(section) {
        true if forwarding.reaches_names() => Some(without_look_ahead(expression)),
        true => without_dot_names(expression),
        false => Some(expression.to_owned()),
    }
}

/// Translates a section that denies every client, such as `<LocationMatch "/\.git">`, to rules. Returns false if there
/// is no counterpart.
fn refuse_paths(section: &Directive, argument: &str, site: &mut Site, forwarding: Forwarding) -> bool {
    let expression = normalized(argument);
    let is_of_folder = section.name.to_ascii_lowercase().starts_with("directory");
    // The expression of a folder is for its path on disk: the root, followed by the path of the request. It can stand
    // for the path of the request only if it does not match in the root. So it must be for names with a leading dot,
    // and the root must have no such name.
    let has_dots = matches!(site.settings.get("root"), Some(Value::Text(root)) if root.contains("/."));
    let is_name = |alternative: &str| alternative.starts_with("/\\.");
    if is_of_folder && (has_dots || !alternatives(&expression).into_iter().all(is_name)) {
        return false;
    }
    if dot_names::is_never_served(&expression, |is_first| match is_of_folder {
        true => forwarding.reaches_names(),
        false => forwarding.reaches_paths(is_first),
    }) {
        site.unneeded(section, NEVER_SERVED);
        return true;
    }
    let Some(paths) = dot_names::path_conditions(&expression, IGNORES_CASE) else {
        return false;
    };
    for conditions in paths {
        if let Some(mut keys) = condition::keys(&conditions) {
            keys.extend(refusal(403));
            site.rule(section, keys);
        }
    }
    true
}

/// Returns the expression for the names of a `<Files>` or `<FilesMatch>`; `None` for other forms.
pub(super) fn name_expression(section: &Directive) -> Option<String> {
    match section.words()[..] {
        ["~", text] => Some(text.to_owned()),
        [text] if section.is("FilesMatch") => Some(text.to_owned()),
        [name] if !name.contains('[') => {
            let expression = condition::escaped(name).replace("\\*", ".*").replace("\\?", ".");
            Some(format!("^{expression}$"))
        }
        _ => None,
    }
}

/// Returns the patterns of an expression that match exactly the same paths; `None` if it has no such patterns.
fn exact(expression: &str) -> Option<Vec<String>> {
    let found = regex::patterns(expression).filter(|found| found.difference.is_none())?;
    Some(found.patterns)
}

/// Returns the rank of a section in the order in which Apache applies them. For a folder, the second number is the
/// length of its path, because Apache applies shorter paths first.
pub(super) fn order(section: &Directive) -> (u8, usize) {
    let is_expression = section.argument(0) == "~";
    match section.name.to_ascii_lowercase().as_str() {
        "directory" if !is_expression => (0, section.argument(0).trim_end_matches('/').len()),
        "directory" | "directorymatch" => (1, 0),
        "files" | "filesmatch" => (2, 0),
        _ => (3, 0),
    }
}

/// Returns true if the folder of a section contains a folder that a host serves, or is inside of one. `roots`: folders
/// that the host serves. Also returns true if the path of the section has an unknown variable.
pub(super) fn applies(section: &Directive, roots: &[String], context: &ServerContext) -> bool {
    let Some(folder) = context.expand(section.argument(0)) else {
        return true;
    };
    let folder = format!("{}/", folder.trim_end_matches('/'));
    roots.iter().any(|root| {
        let root = format!("{}/", root.trim_end_matches('/'));
        root.starts_with(&folder) || folder.starts_with(&root)
    })
}

/// Returns true for the directives and sections of access control.
pub(super) fn is_access(directive: &Directive) -> bool {
    const NAMES: [&str; 10] = [
        "require",
        "requireall",
        "requireany",
        "requirenone",
        "limit",
        "limitexcept",
        "order",
        "deny",
        "allow",
        "satisfy",
    ];
    NAMES.iter().any(|name| directive.is(name))
}

/// Returns the patterns of a folder below the root or below an alias; `None` for other folders.
fn directory(argument: &str, site: &mut Site, context: &ServerContext) -> Option<Vec<String>> {
    let folder = context.expand(argument)?;
    let folder = folder.trim_end_matches('/');
    let mut found = alias::patterns(folder, site);
    found.extend(below_root(folder, site));
    (!found.is_empty()).then_some(found)
}

/// Returns the pattern of a folder below the root; `None` for other folders.
fn below_root(folder: &str, site: &Site) -> Option<String> {
    let Some(Value::Text(root)) = site.settings.get("root") else {
        return None;
    };
    let root = root.trim_end_matches('/');
    // The settings of a folder also apply to the folders below it.
    if folder == root || root.starts_with(&format!("{folder}/")) {
        return Some("/*".to_owned());
    }
    let rest = folder.strip_prefix(root)?;
    (rest.starts_with('/') && !rest.contains(['*', '?', '['])).then(|| format!("{rest}/*"))
}

/// Returns the pattern of a file name in any folder.
fn file(name: &str) -> String {
    if name.starts_with('*') {
        name.to_owned()
    } else {
        format!("*/{name}")
    }
}

/// Returns true if a section denies every client, and has no other access control.
fn is_denied(section: &Directive) -> bool {
    let denies = |d: &Directive| {
        d.is("Require") && d.argument(1).eq_ignore_ascii_case("denied")
            || d.is("Deny") && d.argument(1).eq_ignore_ascii_case("all")
    };
    // `Order` and `Satisfy all` combine other directives, and admit no client themselves.
    let combines = |d: &Directive| d.is("Order") || d.is("Satisfy") && d.argument(0).eq_ignore_ascii_case("all");
    section.children().iter().any(denies) && section.children().iter().all(|d| denies(d) || combines(d))
}

/// Returns true for `Require all granted` and `Allow from all`.
fn is_granted(directive: &Directive) -> bool {
    let is_all = |first: &str, second: &str| {
        directive.argument(0).eq_ignore_ascii_case(first) && directive.argument(1).eq_ignore_ascii_case(second)
    };
    directive.is("Require") && is_all("all", "granted") || directive.is("Allow") && is_all("from", "all")
}

/// Returns true if a result without the section would be less safe. The section, or a section in it, restricts access,
/// keeps scripts from being run, or runs scripts, whose source would be sent otherwise.
pub(super) fn restricts(section: &Directive) -> bool {
    const NAMES: [&str; 11] = [
        "Require",
        "Deny",
        "AuthType",
        "AuthUserFile",
        "LimitExcept",
        "Satisfy",
        "SSLRequire",
        "SSLRequireSSL",
        "SSLVerifyClient",
        "SSLCARevocationFile",
        "AuthMerging",
    ];
    section.children().iter().any(|d| {
        let is_named = NAMES.iter().any(|name| d.is(name)) && !is_granted(d);
        is_named
            || redirect::refuses(d)
            || rewrite::refuses(d)
            || handler::runs(d)
            || handler::disables(d)
            || restricts(d)
    })
}
