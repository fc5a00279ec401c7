//! Translates `Alias` and `ScriptAlias` to routes, and finds the routes of the folders that they name.

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::value::Value;

use super::context::ServerContext;

/// Translates `Alias` or `ScriptAlias` of a host. Returns false for other directives.
pub(super) fn translate(directive: &Directive, site: &mut Site, context: &ServerContext) -> bool {
    let is_script = directive.is("ScriptAlias");
    if !is_script && !directive.is("Alias") || directive.arguments.len() != 2 {
        return false;
    }
    let path = directive.argument(0).trim_end_matches('/');
    if !path.starts_with('/') || path.contains(['*', '%']) {
        let message = "a path with `*` or `%`, or without a slash at its beginning, has no pattern: write a route with \
             `alias`";
        site.skip(directive, message);
        return true;
    }
    let Some(target) = context.expand(directive.argument(1)) else {
        site.skip(
            directive,
            "the variable is not defined in this file: write a route with `alias`",
        );
        return true;
    };
    let folder = target.trim_end_matches('/');
    // `ScriptAlias /cgi-bin /srv/www/cgi-bin` with the root `/srv/www` needs no route with an alias.
    if is_script && Value::text(folder) == Value::text(format!("{}{path}", root(site))) {
        site.settings.set("cgi", Value::text(path), directive.line);
        return true;
    }
    // `Alias /favicon.ico /srv/icons/round.ico` names a file.
    let has_ending = |path: &str| path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let is_file = !is_script && !directive.argument(0).ends_with('/') && has_ending(path) && has_ending(folder);
    let pattern = if is_file { path.to_owned() } else { format!("{path}/*") };
    let route = site.route(&pattern, directive.line);
    route.set("alias", Value::text(folder), directive.line);
    if is_script {
        route.set("cgi", Value::text(path), directive.line);
    }
    true
}

/// Returns the patterns of the paths below which aliases serve a folder, such as that of a `<Directory>`. `folder`: its
/// path on disk, without a slash at its end.
///
/// With `Alias /docs /srv/docs`, the pattern is `/docs/*` for `/srv` and for `/srv/docs`. For `/srv/docs/api` it is
/// `/docs/api/*`. Its route gets an alias of its own here, because routes inherit only from the site.
pub(super) fn patterns(folder: &str, site: &mut Site) -> Vec<String> {
    let below = format!("{folder}/");
    let mut found = Vec::new();
    let mut inner = Vec::new();
    for route in &site.routes {
        let (Some(Value::Text(alias)), Some(prefix)) = (route.settings.get("alias"), route.pattern.strip_suffix("/*"))
        else {
            continue;
        };
        // The settings of a folder also apply to the folders below it.
        if alias == folder || alias.starts_with(&below) {
            found.push(route.pattern.clone());
        } else if let Some(rest) = folder.strip_prefix(alias.as_str())
            && rest.starts_with('/')
            && !rest.contains(['*', '?', '['])
        {
            inner.push((format!("{prefix}{rest}/*"), route.settings.get("cgi").cloned()));
        }
    }
    for (pattern, cgi) in inner {
        let line = site.line;
        let route = site.route(&pattern, line);
        route.set("alias", Value::text(folder), line);
        if let Some(cgi) = cgi {
            route.set("cgi", cgi, line);
        }
        found.push(pattern);
    }
    found
}

/// Gives an alias to each route below another alias, such as that of a `<Location>`. Without it, the route would look
/// files up below the root of the site.
pub(super) fn finish(site: &mut Site) {
    let aliases: Vec<(String, String)> = site
        .routes
        .iter()
        .filter_map(|route| {
            let Some(Value::Text(folder)) = route.settings.get("alias") else {
                return None;
            };
            Some((route.pattern.strip_suffix("/*")?.to_owned(), folder.clone()))
        })
        .collect();
    const HANDLERS: [&str; 6] = ["root", "alias", "proxy", "fastcgi", "scgi", "uwsgi"];
    for route in &mut site.routes {
        let (path, is_prefix) = match route.pattern.strip_suffix("/*") {
            Some(path) => (path, true),
            None => (route.pattern.as_str(), false),
        };
        if path.contains('*') || HANDLERS.iter().any(|key| route.settings.has(key)) {
            continue;
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        // A name without an ending is that of a folder. RockNet redirects its path to the same path with a slash, so it
        // needs no alias.
        if !is_prefix && !name.contains('.') {
            continue;
        }
        let below = aliases.iter().filter_map(|(prefix, folder)| {
            let rest = path
                .strip_prefix(prefix.as_str())
                .filter(|rest| rest.starts_with('/'))?;
            Some((prefix.len(), format!("{folder}{rest}")))
        });
        if let Some((_, target)) = below.max_by_key(|(length, _)| *length) {
            let line = route.line;
            route.settings.set("alias", Value::Text(target), line);
        }
    }
}

fn root(site: &Site) -> String {
    match site.settings.get("root") {
        Some(Value::Text(root)) => root.trim_end_matches('/').to_owned(),
        _ => String::new(),
    }
}
