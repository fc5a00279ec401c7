//! Translates directives of Caddy that become settings: `root`, `try_files`, `header`, `basic_auth` and `log`.

use rocknet_config::template::Scope;

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::placeholder;
use crate::settings::Settings;
use crate::value::Value;

use super::place::BlockPlace;

/// Translates `root`. In a block that strips a prefix, the folder takes the place of the prefix.
pub(super) fn root(directive: &Directive, folder: &str, place: &BlockPlace, settings: &mut Settings, site: &mut Site) {
    let folder = if folder == "/" {
        folder
    } else {
        folder.trim_end_matches('/')
    };
    // In a whole site, a prefix is removed only from the paths that have it, so the folder stays as it is.
    let Some(prefix) = place.strip.as_ref().filter(|_| !place.is_site()) else {
        return settings.set("root", Value::text(folder), directive.line);
    };
    match folder.strip_suffix(prefix.as_str()) {
        // With the prefix `/app`, the root `/srv` serves the same files as the folder `/srv/app`.
        Some(parent) => {
            let parent = if parent.is_empty() { "/" } else { parent };
            settings.set("root", Value::text(parent), directive.line);
        }
        None if place.patterns == [format!("{prefix}/*")] && !folder.contains('{') => {
            settings.set("alias", Value::text(folder), directive.line);
        }
        None => {
            settings.close(directive.line);
            let message = "`alias` takes a constant path and folder, so `deny = \"all\"` denies every client here: write a \
                           route with `alias`, and remove `deny`";
            site.skip(directive, message);
        }
    }
}

/// Translates `try_files` to `try` and `fallback`.
pub(super) fn try_files(directive: &Directive, paths: &[&str], settings: &mut Settings, site: &mut Site) {
    let Some((last, tried)) = paths.split_last() else {
        return;
    };
    // For example `/index.html` or `{path}.html`.
    let is_supported = |path: &&str| path.starts_with('/') && !path.contains(['{', '?']) || path.starts_with("{path}");
    if !tried.iter().all(is_supported) || !(is_supported(last) || *last == "=404") {
        return site.skip(directive, "write `try` with {path}, and `fallback`");
    }
    let mut tried: Vec<&str> = tried.to_vec();
    match *last {
        "=404" => {}
        last if last.starts_with("{path}") => tried.push(last),
        last => settings.set("fallback", Value::text(last), directive.line),
    }
    // RockNet looks up the index files of folders by itself, and `{path}` alone is the default of `try`.
    tried.retain(|path| !matches!(*path, "{path}/" | "{path}/index.html" | "{path}/index.php"));
    if tried.iter().any(|path| *path != "{path}") {
        settings.set(
            "try",
            Value::List(tried.into_iter().map(Value::text).collect()),
            directive.line,
        );
    }
}

/// Translates `header` with a field, or with a block of fields.
pub(super) fn header(directive: &Directive, words: &[&str], settings: &mut Settings, site: &mut Site) {
    let single = Directive::new(
        "header",
        words.iter().map(|word| (*word).to_owned()).collect(),
        directive.line,
    );
    let lines = directive.children().iter().map(|inner| {
        let words = std::iter::once(inner.name.clone()).chain(inner.arguments.clone());
        Directive::new("header", words.collect(), inner.line)
    });
    for field in lines.chain((!words.is_empty()).then_some(single)) {
        match field.words()[..] {
            ["defer"] => {}
            [name] if name.starts_with('-') && !name.ends_with('*') => {
                settings.set_entry("headers", &name[1..], Value::text(""), field.line);
            }
            [name, value]
                if !name.starts_with('-')
                    && let Some(value) = placeholder::from_caddy(value, Scope::Response) =>
            {
                // `+` adds a value, `?` sets a default, and `>` sets the field after the handler, as RockNet does.
                let plain = name.trim_start_matches(['+', '?', '>']);
                if name.starts_with(['+', '?']) {
                    site.differs(&field, "the field is set, and a value of the application is replaced");
                }
                settings.set_entry("headers", plain, Value::Text(value), field.line);
            }
            _ => site.skip(
                &field,
                "`headers` do not replace parts of values, and take the placeholders of docs/placeholders.md",
            ),
        }
    }
}

/// Translates `basic_auth`.
pub(super) fn basic_auth(directive: &Directive, words: &[&str], settings: &mut Settings, site: &mut Site) {
    let mut users = Vec::new();
    for inner in directive.children() {
        let hash = inner.argument(0);
        if hash.starts_with('$') {
            users.push((inner.name.clone(), Value::text(hash)));
        } else {
            site.skip(inner, "the hash has no known form: `rocknet hash-password` creates one");
        }
    }
    if users.is_empty() {
        settings.close(directive.line);
        return site.skip(
            directive,
            "no user is left, so `deny = \"all\"` denies every client here: write `auth`",
        );
    }
    let mut auth = vec![("users".to_owned(), Value::Table(users))];
    if let [_algorithm, realm] = words {
        auth.insert(0, ("realm".to_owned(), Value::text(*realm)));
    }
    settings.set("auth", Value::Table(auth), directive.line);
}

/// Translates `log` of a site.
pub(super) fn log(directive: &Directive, site: &mut Site) {
    let mut target = "stdout".to_owned();
    let mut format = "json";
    for inner in directive.children() {
        match (inner.name.as_str(), &inner.words()[..]) {
            ("output", ["file", file]) if !file.contains('{') => {
                target = (*file).to_owned();
                for child in inner.children() {
                    site.skip(child, "write `rotate` in [log], which applies to all log files");
                }
            }
            ("output", ["stdout"]) => {}
            ("output", ["stderr"]) => site.differs(inner, "access logs go to a file or to standard output"),
            ("output", ["discard"]) => target = "off".to_owned(),
            ("format", ["json"]) => {}
            ("format", ["console"]) => {
                format = "combined";
                site.differs(inner, "lines have the Combined Log Format");
            }
            ("level", _) => site.unneeded(inner, "the access log has one line for each request"),
            _ => site.skip(inner, "see docs/logs.md for the settings of logs"),
        }
    }
    if format == "json" {
        site.differs(
            directive,
            "the members of a line in JSON have other names: docs/logs.md",
        );
    }
    let log = vec![
        ("access".to_owned(), Value::Text(target)),
        ("format".to_owned(), Value::text(format)),
    ];
    site.settings.set("log", Value::Table(log), directive.line);
}
