//! Removes the values of a document that the check of the configuration refuses, with a note for each.
//!
//! Access stays restricted: a table that loses a restriction denies every client instead, or the note says that the
//! result is more open.

use std::path::Path;

use rocknet_config::environment::MemoryEnvironment;
use rocknet_config::{Code, Finding, Report};

use crate::document::{Document, SiteRule};
use crate::note::{Note, NoteKind, RESTRICTS_ACCESS, shown};
use crate::value::Value;

/// Origin of a line of the result. The numbers are the index of the site, and the index of the route or rule in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Comment, empty line, or header of a global table.
    Comment,
    /// Global table, and a key in it.
    Global(&'static str, String),
    Site(usize),
    SiteKey(usize, String),
    Route(usize, usize),
    RouteKey(usize, usize, String),
    Rule(usize, usize),
}

/// Removes the values that a report refuses. Returns false if it removes none, and the translation then fails.
pub(crate) fn refuse(document: &mut Document, origins: &[Origin], report: &Report) -> bool {
    let mut refused: Vec<(Origin, String)> = Vec::new();
    // Files of the configuration need not exist on this machine. For the check, every path is an existing folder, so a
    // path of a file is reported as a folder.
    let is_about_file = |finding: &&Finding| finding.code == Code::Missing && finding.message.ends_with(" is a folder");
    for finding in report
        .findings
        .iter()
        .filter(|finding| finding.is_error() && !is_about_file(finding))
    {
        let line = finding.location.as_ref().map_or(0, |location| location.line);
        let origin = line.checked_sub(1).and_then(|line| origins.get(line));
        if let Some(origin) = origin.filter(|origin| **origin != Origin::Comment)
            && !refused.iter().any(|(other, _)| other == origin)
        {
            let help = finding.help.iter().flat_map(|help| ["; ", help]);
            let message: String = std::iter::once(finding.message.as_str()).chain(help).collect();
            refused.push((origin.clone(), message));
        }
    }
    // From the last to the first, so that the indices of the remaining values stay valid.
    refused.sort_by_key(|(origin, _)| std::cmp::Reverse(position(origin)));
    let mut removed = false;
    for (origin, message) in refused {
        removed |= remove(document, &origin, &message);
    }
    removed
}

/// Returns the position of an origin in the document: the index of the site, the part of the site, and the position in
/// that part. Part 0 is the whole site; then follow its keys, routes and rules. A route comes before its keys.
fn position(origin: &Origin) -> (usize, u8, usize) {
    match origin {
        // Global keys are removed by name, so their order does not matter.
        Origin::Comment | Origin::Global(..) => (0, 0, 0),
        Origin::Site(at) => (*at, 0, 0),
        Origin::SiteKey(at, _) => (*at, 1, 0),
        Origin::Route(at, index) => (*at, 2, 2 * index),
        Origin::RouteKey(at, index, _) => (*at, 2, 2 * index + 1),
        Origin::Rule(at, index) => (*at, 3, *index),
    }
}

/// Removes the value, route, rule or site of an origin, and adds a note with the message of its finding. Of a rule,
/// removes only the refused patterns if others are left. Returns false if there is nothing to remove.
fn remove(document: &mut Document, origin: &Origin, message: &str) -> bool {
    let note = |line: usize, directive: String| Note {
        kind: NoteKind::NotTranslated,
        file: String::new(),
        line,
        directive: shown(&directive),
        message: message.to_owned(),
    };
    let Document {
        sites, tables, notes, ..
    } = document;
    match origin {
        Origin::Comment => return false,
        Origin::Global(table, key) => {
            let Some(removed) = tables.get_mut(table).and_then(|table| table.refuse(key)) else {
                return false;
            };
            notes.push(note(removed.line, key.clone()));
        }
        Origin::Site(at) => {
            let site = sites.remove(*at);
            notes.extend(site.notes);
            notes.push(note(site.line, format!("site {}", site.name)));
        }
        Origin::SiteKey(at, key) => {
            let site = &mut sites[*at];
            let Some(removed) = site.settings.refuse(key) else {
                return false;
            };
            site.notes.push(note(removed.line, key.clone()));
        }
        Origin::Route(at, index) => {
            let site = &mut sites[*at];
            let route = site.remove_route(*index);
            let mut left_out = note(route.line, format!("route {}", route.pattern));
            if route.settings.restricts() {
                left_out.message = format!("{RESTRICTS_ACCESS}: {message}");
            }
            site.notes.push(left_out);
        }
        Origin::RouteKey(at, index, key) => {
            let site = &mut sites[*at];
            let Some(removed) = site.routes[*index].settings.refuse(key) else {
                return false;
            };
            site.notes.push(note(removed.line, key.clone()));
        }
        Origin::Rule(at, index) => {
            let site = &mut sites[*at];
            let rule = &mut site.rules[*index];
            let message = match rule.refuses_requests() {
                true => format!("{RESTRICTS_ACCESS}: {message}"),
                false => message.to_owned(),
            };
            let mut left_out = note(rule.line, rule.directive.clone());
            left_out.message = match drop_paths(rule) {
                Some(paths) => format!("{message}; left out: {}", shown(&paths)),
                None => {
                    site.rules.remove(*index);
                    message
                }
            };
            site.notes.push(left_out);
        }
    }
    true
}

/// Removes the patterns of a rule that the check refuses by themselves, and returns them. Returns `None` if the rule
/// has no such pattern, or no other; the caller then removes the whole rule.
fn drop_paths(rule: &mut SiteRule) -> Option<String> {
    let (_, path) = rule.keys.iter_mut().find(|(key, _)| *key == "path")?;
    let Value::List(patterns) = path else { return None };
    let (kept, dropped): (Vec<Value>, Vec<Value>) = patterns.drain(..).partition(is_accepted);
    let is_partial = !kept.is_empty() && !dropped.is_empty();
    *path = Value::one_or_list(kept);
    is_partial.then(|| {
        let texts = dropped.iter().map(|pattern| match pattern {
            Value::Text(text) => text.as_str(),
            _ => "",
        });
        texts.collect::<Vec<_>>().join(" ")
    })
}

/// Returns true if the check accepts a pattern in a rule.
fn is_accepted(pattern: &Value) -> bool {
    let mut text = "[[site.default.rule]]\nrespond = 404\npath = ".to_owned();
    pattern.write(&mut text);
    rocknet_config::parse(&text, Path::new("/rocknet.toml"), &MemoryEnvironment::default()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::RuleStage;

    #[test]
    fn only_refused_paths_of_a_rule_are_dropped() {
        let rule = |paths: &[&str]| SiteRule {
            line: 1,
            keys: vec![
                ("path", Value::texts(paths.iter().copied())),
                ("respond", Value::Number(403)),
            ],
            directive: "deny".to_owned(),
            stage: RuleStage::Site,
        };
        let mut partial = rule(&["/a", "/./b", "/c/*"]);
        assert_eq!(drop_paths(&mut partial).as_deref(), Some("/./b"));
        assert_eq!(partial.keys[0].1, Value::texts(["/a", "/c/*"]));
        assert_eq!(drop_paths(&mut rule(&["/./a", "/./b"])), None);
        assert_eq!(drop_paths(&mut rule(&["/a", "/b"])), None);
    }
}
