//! Access control of a whole site: keys that contradict each other, and open routes inside of protected ones.

use std::collections::HashSet;

use crate::context::Check;
use crate::file::Table;
use crate::finding::Code;
use crate::message::short;
use crate::model::{ClientRange, Pattern, Route, Settings};
use crate::source::Span;

/// Refuses an `allow` that lets no one in, at the key that a site or route has written.
pub(super) fn conflict(check: &mut Check<'_>, table: &Table, settings: &Settings) {
    let access = &settings.access;
    let written = table.entries.get("allow").or_else(|| table.entries.get("deny"));
    if let Some(entry) = written
        && !access.allow.is_empty()
        && access.deny.contains(&ClientRange::All)
    {
        let message = "`deny = \"all\"` holds here, so `allow` lets no one in";
        let help = "with `allow` all others are denied: write deny = [] or remove it";
        check.error(Code::Conflict, entry.key, message, help);
    }
}

/// Returns true if a route has one of the keys that decide about clients.
pub(super) fn is_written(table: &Table) -> bool {
    ["allow", "deny", "auth"]
        .iter()
        .any(|key| table.entries.contains_key(*key))
}

/// Warns of open routes inside of protected ones: a route takes these keys from its site, and its writer may expect them of
/// the other route. `open`: routes that everyone may enter and that have none of these keys.
pub(super) fn warn_open(check: &mut Check<'_>, routes: &[Route], open: &[(Pattern, Span)]) {
    let protected = routes.iter().filter(|route| !route.settings.is_open());
    let protected: HashSet<&str> = protected
        .filter_map(|route| match &route.pattern {
            Pattern::Prefix(prefix) => Some(prefix.as_str()),
            Pattern::Exact(_) | Pattern::Glob(_) => None,
        })
        .collect();
    for (pattern, span) in open {
        let (Pattern::Exact(path) | Pattern::Prefix(path)) = pattern else {
            continue;
        };
        let mut folders = path.rmatch_indices('/').map(|(at, _)| &path[..=at]);
        if let Some(prefix) = folders.find(|folder| protected.contains(folder)) {
            let message = format!("everyone may enter here, though \"{}*\" is protected", short(prefix));
            let help = "repeat its `allow`, `deny` or `auth` here, or write auth = false: a route takes them from its site alone";
            check.warning(Code::Dangerous, *span, message, help);
        }
    }
}
