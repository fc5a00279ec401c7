//! Translates `try_files`: static files, front controllers, single-page apps, and named locations.

use crate::directive::Directive;
use crate::document::Notes;
use crate::value::Value;

use super::named_access::NamedExit;
use super::params;
use super::place::Locations;
use super::restriction::is_unknown_restriction;
use super::scope::Scope;
use super::upstream::Upstreams;

/// Translates `try_files` to `try` and `fallback`. `is_for_all`: true if the directive applies to all paths of `scope`.
/// Locations of nginx do not inherit `try_files`. The `try_files` of a server with a `location /a/` therefore does not
/// apply below `/a/`, and `is_for_all` is false.
pub(super) fn translate<'a>(
    directive: &'a Directive,
    scope: &mut Scope<'a>,
    locations: &Locations<'a>,
    upstreams: &Upstreams,
    is_for_all: bool,
) {
    let line = directive.line;
    let words = directive.words();
    let Some((last, tried)) = words.split_last() else {
        return;
    };
    let mut paths = Vec::new();
    for path in tried {
        match *path {
            "$uri" => paths.push("{path}".to_owned()),
            // RockNet finds the index of a folder without a setting.
            "$uri/" => {}
            path if path.starts_with("$uri") && !path["$uri".len()..].contains('$') => {
                paths.push(format!("{{path}}{}", &path["$uri".len()..]));
            }
            path if path.starts_with('/') && !path.replace("$uri", "").contains('$') => {
                paths.push(path.replace("$uri", "{path}"));
            }
            _ => return scope.notes.skip(directive, "write `try` and `fallback`"),
        }
    }
    // RockNet tries the path itself anyway, so `$uri` alone needs no setting.
    if paths.iter().any(|path| path != "{path}") {
        scope
            .settings
            .set("try", Value::List(paths.into_iter().map(Value::Text).collect()), line);
    }
    let is_app = |name: &str| {
        locations
            .named
            .get(name)
            .is_some_and(|d| d.children().iter().any(|d| d.name.ends_with("_pass")))
    };
    // Without `$uri/`, nginx does not look for the index of a folder. With an application, `index` has no effect,
    // because the application gets every request.
    if !tried.iter().any(|path| path.contains("$uri/")) && !is_app(last) {
        match is_for_all {
            // Nested routes inherit `index`, so it is set only if it is right for them too.
            true => scope.settings.set("index", Value::List(Vec::new()), line),
            false => scope.notes.differs(directive, "the index of a folder is served, too"),
        }
    }
    match *last {
        "=404" => scope.settings.set("fallback", Value::Flag(false), line),
        name if name.starts_with('@') => named_location(directive, name, scope, locations, upstreams),
        last if last.starts_with('/') => match fallback(last) {
            Some(fallback) => scope.settings.set("fallback", Value::Text(fallback), line),
            None => {
                let path = last.split(['?', '$']).next().unwrap_or(last);
                scope.settings.set("fallback", Value::text(path), line);
                let message = "`fallback` keeps the query of the request; the script reads the path from REQUEST_URI";
                scope.notes.differs(directive, message);
            }
        },
        last => match last.strip_prefix('=').and_then(|status| status.parse::<u64>().ok()) {
            Some(400..) => {
                scope.settings.set("fallback", Value::Flag(false), line);
                scope.notes.differs(directive, "a path without a file gets 404");
            }
            _ => scope
                .notes
                .skip(directive, "write `fallback`, or a rule with `respond`"),
        },
    }
}

/// Returns the value of `fallback` for the last argument; `None` if it has a variable without a counterpart. RockNet
/// appends the query of the request by itself, so variables such as `$args` are removed from the end.
fn fallback(last: &str) -> Option<String> {
    let ends = [
        "$is_args$args",
        "?$args",
        "&$args",
        "$is_args$query_string",
        "?$query_string",
        "&$query_string",
        "?",
    ];
    let target = ends.iter().find_map(|end| last.strip_suffix(end)).unwrap_or(last);
    let target = target.replace("?$args&", "?").replace("?$query_string&", "?");
    // Only scripts take a query.
    let path = target.split('?').next().unwrap_or_default();
    let target = if path.ends_with(".php") {
        target.replace("$uri", "{path}")
    } else {
        path.to_owned()
    };
    (!target.contains('$')).then_some(target)
}

/// Translates the named location `name`, the last argument of `try_files`.
fn named_location<'a>(
    directive: &'a Directive,
    name: &str,
    scope: &mut Scope<'a>,
    locations: &Locations<'a>,
    upstreams: &Upstreams,
) {
    let Some(location) = locations.named.get(name) else {
        return scope.notes.skip(directive, "there is no such location in this file");
    };
    let mut has_pass = false;
    scope.read_named(location, |scope| has_pass = read_named(location, scope, upstreams));
    if let Some(exit) = exit(location, locations) {
        scope.leave_named(exit);
    }
    if has_pass {
        let message = "every request goes to the application: RockNet does not look for a file first; write a route \
             with `proxy = false` and `root` for each folder of files";
        scope.notes.differs(directive, message);
    }
}

/// Reads the directives of a named location, its back end last, because the others apply to it wherever they stand.
/// Returns true if it has a back end.
fn read_named<'a>(location: &'a Directive, scope: &mut Scope<'a>, upstreams: &Upstreams) -> bool {
    let (passes, others): (Vec<_>, Vec<_>) = location.children().iter().partition(|d| d.name.ends_with("_pass"));
    let has_pass = !passes.is_empty();
    for inner in others.into_iter().chain(passes) {
        match inner.is("rewrite") {
            true if inner.argument(1).starts_with("/index.php") => {
                scope.settings.set("fallback", Value::text("/index.php"), inner.line);
                let message = "`fallback` keeps the query of the request; the script reads the path from REQUEST_URI";
                scope.notes.differs(inner, message);
            }
            true => {
                let message = "write [[site.\"…\".rule]] with `exists = \"nothing\"` and `rewrite`";
                scope.notes.skip(inner, message);
            }
            false if scope.collect_named(inner) => {}
            false => scope.read(inner, upstreams),
        }
    }
    params::note_without_pass(&scope.params, scope.pass, &mut scope.notes);
    has_pass
}

/// Returns the way in which every request leaves a named location before nginx applies its access control: by the only
/// `return` or `rewrite` of the location. Returns `None` if a request may stay there, or if the target is not known.
fn exit<'a>(location: &Directive, locations: &Locations<'a>) -> Option<NamedExit<'a>> {
    const EVERY: [&str; 7] = ["^", ".", ".*", "^.*", "^.*$", "^(.*)$", "^/(.*)$"];
    let is_rewriting = |d: &&Directive| ["return", "rewrite", "if", "break"].contains(&d.name.as_str());
    let mut rewriting = location.children().iter().filter(is_rewriting);
    let (Some(only), None) = (rewriting.next(), rewriting.next()) else {
        return None;
    };
    let may_stay = |d: &Directive| d.name.ends_with("_pass") || is_unknown_restriction(&d.name);
    if location.children().iter().any(may_stay) {
        return None;
    }
    match (only.name.as_str(), &only.words()[..]) {
        ("return", _) => Some(NamedExit::Response),
        // After a rewrite with the flag `break`, the request stays in the location.
        ("rewrite", [expression, target, flags @ ..]) if EVERY.contains(expression) && *flags != ["break"] => {
            let path = target.split('?').next().filter(|path| path.starts_with('/'))?;
            let target = locations.directives_for(path).filter(|_| !path.contains('$'))?;
            let is_unclear = |d: &Directive| is_rewriting(&d) || d.is("location") || is_unknown_restriction(&d.name);
            (!target.iter().any(is_unclear)).then_some(NamedExit::Target(target))
        }
        _ => None,
    }
}
