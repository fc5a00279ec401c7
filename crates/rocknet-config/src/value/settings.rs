//! Parsers of single keys of a site or route. Each parser replaces the inherited value. The exceptions are the maps
//! `types`, `headers`, `errors`, `redirects` and `push`, which are merged entry by entry, and `limits`, which is merged
//! key by key.

use std::collections::{BTreeMap, HashMap};

use crate::binding::{self, Section, WrittenKey};
use crate::context::Check;
use crate::file::{Entry, Table, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{Alias, Fallback, Pattern, Redirect, Settings};
use crate::source::Span;
use crate::template::{Scope, Template, TemplateError};
use crate::value::{
    access, auth, browse, cgi, controller, cors, field, limit, path, pattern, php, proxy, response_cache, typed,
};

/// Maximum number of files pushed with one page. A page needs fewer files to be displayed, and each file uses a stream.
const MAX_PUSH: usize = 32;

pub(crate) fn root(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    settings.root = path::root(check, &written.entry.node);
}

/// Reads `alias`. Module `check::alias` completes it, because the path that it replaces is the pattern of the route.
pub(crate) fn alias(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    if let Some(target) = path::folder(check, "alias", &written.entry.node) {
        settings.alias = Some(Alias {
            path: String::new(),
            file: None,
            // `replace` makes the target the root, and returns the former root.
            document_root: settings.root.replace(target),
        });
    }
}

pub(crate) fn php(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    settings.php = php::build(check, &written.entry.node, settings.root.is_some());
}

pub(crate) fn proxy(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    settings.proxy = proxy::build(check, &written.entry.node);
}

pub(crate) fn controller(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    settings.controller = controller::build(check, &written.entry.node);
}

pub(crate) fn cgi(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    settings.cgi = cgi::build(check, &written.entry.node, settings.root.is_some());
}

pub(crate) fn browse(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    settings.browse = browse::build(check, &written.entry.node);
}

pub(crate) fn cors(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    settings.cors = cors::build(check, &written.entry.node);
}

pub(crate) fn cache(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    settings.cache = response_cache::build(check, &written.entry.node);
}

pub(crate) fn allow(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    settings.access.allow = access::allow(check, &written.entry.node);
}

pub(crate) fn deny(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    settings.access.deny = access::deny(check, &written.entry.node);
}

/// Reads `limit`. Inherited limits are replaced, so that a route can have higher ones than its site.
pub(crate) fn limit(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    settings.limits = limit::build(check, &written.entry.node);
}

/// Reads `auth`. Inherited users are replaced, not merged, because a route often admits fewer users than its site.
pub(crate) fn auth(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    auth::read(check, &written.entry.node, settings);
}

pub(crate) fn fallback(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    let node = &written.entry.node;
    settings.fallback = match node.value {
        Value::Boolean(false) => Fallback::Off,
        Value::Boolean(true) => {
            let help = "write the path of a file: fallback = \"/index.html\"";
            let message = "`fallback = true` names no file";
            check.error(Code::BadValue, node.span, message, help);
            Fallback::Default
        }
        _ => path::fallback(check, node).map_or(Fallback::Default, Fallback::Path),
    };
}

pub(crate) fn limits(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    binding::read(check, Section::SiteLimits, written.entry.node.as_table(), settings);
}

pub(crate) fn index(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    let mut names = Vec::new();
    for (element, span) in typed::texts(&written.entry.node) {
        let text = element.value.as_str();
        let bad = text.is_empty() || text == "." || text == "..";
        if bad || text.contains(['/', '\\']) || text.contains(|c: char| c.is_control()) {
            let help = "write file names: index = [\"index.html\"]; for paths use `try`";
            check.bad_text(
                element,
                span,
                format!("`index`: \"{}\" is not a file name", short(text)),
                help,
            );
            continue;
        }
        names.push(text.to_owned());
    }
    settings.index = names;
}

/// Reads `try`. Invalid paths are reported and left out.
pub(crate) fn try_paths(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    let mut paths = Vec::new();
    for (element, span) in typed::texts(&written.entry.node) {
        let text = element.value.as_str();
        if text.starts_with('=') {
            let help = "remove it: if nothing matches, the response is 404";
            check.bad_text(element, span, format!("`try`: \"{}\" is not a path", short(text)), help);
            continue;
        }
        if let Err((message, help)) = path::template_with_query(text) {
            check.bad_text(element, span, format!("`try`: {message}"), help);
            continue;
        }
        paths.push(text.to_owned());
    }
    settings.try_paths = paths;
}

/// Merges `types` into the inherited types, by extension.
pub(crate) fn types(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    for (name, entry, text) in map(written) {
        let extension = name.strip_prefix('.').unwrap_or(name).to_ascii_lowercase();
        let is_extension = extension == "*" || (field::is_token(&extension) && !extension.contains(['.', '*']));
        if !is_extension || extension.len() > MAX_EXTENSION {
            let message = format!("\"{}\" is not the extension of a file name", short(name));
            let help = "write \".wasm\"; only the part after the last dot of a name counts";
            check.error(Code::BadValue, entry.key, message, help);
            continue;
        }
        let Some(value) = field::media_type(text) else {
            let message = format!(
                "`types`: \"{}\" is not a media type",
                short(typed::as_written(&entry.node))
            );
            let help = "write two words with a slash: \"application/wasm\"";
            check.error(Code::BadValue, entry.node.span, message, help);
            continue;
        };
        settings
            .key_spans
            .insert(format!("types.{extension}"), check.source_span(entry.key));
        settings.types.insert(extension, value);
    }
}

/// Maximum length of an extension in bytes. No extension in use is as long.
const MAX_EXTENSION: usize = 32;

/// Merges `headers` into the inherited fields, by name without regard to case.
pub(crate) fn headers(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    let entries = map(written);
    // Both maps have lower-case names as keys, because names that differ only in case are the same field. `own_spans`
    // contains the spans of the fields read so far, and `inherited` contains the inherited names as written.
    let mut own_spans: HashMap<String, Span> = HashMap::with_capacity(entries.len());
    let mut inherited: HashMap<String, String> = match entries.is_empty() {
        true => HashMap::new(),
        false => (settings.headers.keys())
            .map(|name| (name.to_ascii_lowercase(), name.clone()))
            .collect(),
    };
    for (name, entry, text) in entries {
        let token = !name.is_empty() && name.bytes().all(field::is_token_byte);
        if !token {
            let message = format!("\"{}\" is not a header field name", short(name));
            let help = "use letters, digits and `-`: \"Cache-Control\"";
            check.error(Code::BadValue, entry.key, message, help);
            continue;
        }
        if field::is_reserved(name) {
            let message = format!(
                "`{name}` can be set only by the server, because it frames messages or concerns one connection"
            );
            check.error(Code::BadValue, entry.key, message, "remove it");
            continue;
        }
        if let Some(bad) = text.chars().find(|c| !(' '..='~').contains(c) && *c != '\t') {
            let what = if bad.is_control() {
                "a control character"
            } else {
                "a character outside ASCII"
            };
            let help = "write one line of ASCII; encode other characters as the definition of the field requires";
            check.error(
                Code::BadValue,
                entry.node.span,
                format!("the value of `{name}` contains {what}"),
                help,
            );
            continue;
        }
        if let Err(TemplateError { message, help }) = Template::parse(text, Scope::Response) {
            check.error(Code::BadValue, entry.node.span, format!("`{name}`: {message}"), help);
            continue;
        }
        let lower = name.to_ascii_lowercase();
        if let Some(there) = own_spans.get(&lower) {
            let message = format!("`{name}` is defined twice; names are not case-sensitive");
            check.conflict(
                entry.key,
                ("first defined here", *there),
                message,
                "keep one of the two",
            );
            continue;
        }
        // An inherited field is replaced even if its name differs in case.
        if let Some(replaced) = inherited.remove(&lower) {
            settings.headers.remove(&replaced);
            settings.key_spans.remove(&format!("headers.{replaced}"));
        }
        own_spans.insert(lower, entry.key);
        settings.headers.insert(name.to_owned(), text.trim().to_owned());
        settings
            .key_spans
            .insert(format!("headers.{name}"), check.source_span(entry.key));
    }
}

/// Merges `errors` into the inherited pages, by status.
pub(crate) fn errors(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    for (name, entry, _) in map(written) {
        let status = name
            .parse::<u16>()
            .ok()
            .filter(|s| (400..600).contains(s) && name.len() == 3);
        let Some(status) = status else {
            let message = format!("\"{}\" is not an error status", short(name));
            check.error(
                Code::BadValue,
                entry.key,
                message,
                "write a number from 400 to 599: errors = { 404 = \"/404.html\" }",
            );
            continue;
        };
        if let Some(page) = path::site_path(check, "errors", &entry.node) {
            settings.errors.insert(status, page);
            settings
                .key_spans
                .insert(format!("errors.{status}"), check.source_span(entry.key));
        }
    }
}

/// Merges `redirects` into the inherited redirects, by pattern.
pub(crate) fn redirects(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    let Some(table) = written.entry.node.as_table() else {
        return;
    };
    // The map is keyed by pattern, because a redirect replaces the inherited redirect with the same pattern, and a site
    // that has moved may have tens of thousands of redirects.
    let inherited = std::mem::take(&mut settings.redirects).into_iter();
    let mut all: BTreeMap<Pattern, Redirect> = inherited.map(|redirect| (redirect.from.clone(), redirect)).collect();
    for (name, entry) in table.in_order() {
        let from = match pattern::parse(name) {
            Ok(from) => from,
            Err((message, help)) => {
                check.error(Code::BadValue, entry.key, message, help);
                continue;
            }
        };
        let Some(redirect) = redirect(check, from, entry) else {
            continue;
        };
        all.insert(redirect.from.clone(), redirect);
        settings
            .key_spans
            .insert(format!("redirects.{name}"), check.source_span(entry.key));
    }
    settings.redirects = all.into_values().collect();
}

/// Reads one redirect, in the short form or as a table; `None` after an error.
fn redirect(check: &mut Check<'_>, from: Pattern, entry: &Entry) -> Option<Redirect> {
    let (to, status) = match &entry.node.value {
        Value::Table(long) => {
            let status = typed::integer::<u16>(Some(long), "status").unwrap_or(Redirect::STATUS);
            // A status outside 301 to 308 has been reported as out of range already.
            if let Some(node) = long.node("status")
                && !matches!(status, 301 | 302 | 303 | 307 | 308)
                && (301..=308).contains(&status)
            {
                let help = "write 301, 302, 303, 307 or 308";
                check.error(
                    Code::BadValue,
                    node.span,
                    format!("{status} is not a redirect status"),
                    help,
                );
            }
            let Some(to) = long.node("to") else {
                let help = "write { to = \"/new\", status = 302 }";
                check.error(Code::Missing, entry.key, "the redirect has no `to`", help);
                return None;
            };
            (to, status)
        }
        _ => (&entry.node, Redirect::STATUS),
    };
    let written = to.written()?;
    if let Err((message, help)) = pattern::target(&from, &written.value) {
        check.bad_text(written, to.span, message, help);
        return None;
    }
    Some(Redirect {
        from,
        to: written.value.clone(),
        status,
    })
}

/// Merges `push` into the inherited files, by pattern of the page.
pub(crate) fn push(check: &mut Check<'_>, written: &WrittenKey<'_>, settings: &mut Settings) {
    let Some(table) = written.entry.node.as_table() else {
        return;
    };
    for (name, entry) in table.in_order() {
        let page = match pattern::parse(name) {
            Ok(page) => page,
            Err((message, help)) => {
                check.error(Code::BadValue, entry.key, message, help);
                continue;
            }
        };
        let mut files = Vec::new();
        for (text, span) in typed::texts(&entry.node) {
            if let Some((message, help)) = path::site_path_error(&text.value) {
                check.bad_text(text, span, format!("`push`: {message}"), help);
                continue;
            }
            if page == Pattern::Exact(text.value.clone()) {
                let message = format!("`push`: \"{}\" is the page itself", short(&text.value));
                check.bad_text(text, span, message, "remove it");
                continue;
            }
            if !files.contains(&text.value) {
                files.push(text.value.clone());
            }
            if files.len() > MAX_PUSH {
                break;
            }
        }
        if files.len() > MAX_PUSH {
            let message = format!("`push`: more than {MAX_PUSH} files for one page");
            let help = "name only files that the page needs to be displayed: style sheets, scripts, fonts";
            check.error(Code::BadValue, entry.node.span, message, help);
            continue;
        }
        settings.push.insert(page, files);
        settings
            .key_spans
            .insert(format!("push.{name}"), check.source_span(entry.key));
    }
}

/// Returns the entries of a map of strings, in the order of the file: the name, the entry and the string of each.
fn map<'t>(written: &WrittenKey<'t>) -> Vec<(&'t str, &'t Entry, &'t str)> {
    let entries = written.entry.node.as_table().map(Table::in_order).unwrap_or_default();
    entries
        .into_iter()
        .filter_map(|(name, entry)| Some((name, entry, entry.node.as_text()?)))
        .collect()
}
