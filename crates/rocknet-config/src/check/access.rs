//! Checks of access control: contradictory keys, and unrestricted routes below protected ones.

use std::collections::HashSet;

use crate::context::Check;
use crate::file::Table;
use crate::finding::Code;
use crate::message::short;
use crate::model::{ClientRange, Pattern, Route, Settings};
use crate::source::Span;

/// Reports an `allow` that has no effect because `deny` denies every client. One of the keys may be inherited, so the
/// error is reported at the key that this site or route contains.
pub(super) fn conflict(check: &mut Check<'_>, table: &Table, settings: &Settings) {
    let access = &settings.access;
    let written = table.entries.get("allow").or_else(|| table.entries.get("deny"));
    if let Some(entry) = written
        && !access.allow.is_empty()
        && access.deny.contains(&ClientRange::All)
    {
        let message = "`deny = \"all\"` applies here, so `allow` has no effect";
        let help = "`allow` alone denies all other clients: remove `deny`, or write deny = [] if it is inherited";
        check.error(Code::Conflict, entry.key, message, help);
    }
}

/// Returns true if the table of a route has a key of access control.
pub(super) fn has_access_key(table: &Table) -> bool {
    ["allow", "deny", "auth", "satisfy"]
        .iter()
        .any(|key| table.entries.contains_key(*key))
}

/// Warns of unrestricted routes whose paths are below the prefix of a protected route, such as `/admin/api/*` below
/// `/admin/*`. A route inherits access control from its site, but the operator may expect it to inherit from the
/// enclosing route. `open`: unrestricted routes without keys of access control.
pub(super) fn warn_open(check: &mut Check<'_>, routes: &[Route], open: &[(Pattern, Span)]) {
    let protected = routes.iter().filter(|route| !route.settings.is_open());
    let protected: HashSet<&str> = protected
        .filter_map(|route| match &route.pattern {
            Pattern::Prefix(prefix) => Some(prefix.as_str()),
            Pattern::Exact(_) | Pattern::Glob(_) | Pattern::Regex(_) => None,
        })
        .collect();
    for (pattern, span) in open {
        let (Pattern::Exact(path) | Pattern::Prefix(path)) = pattern else {
            continue;
        };
        let mut folders = path.rmatch_indices('/').map(|(at, _)| &path[..=at]);
        if let Some(prefix) = folders.find(|folder| protected.contains(folder)) {
            let message = format!(
                "every client is allowed here, although route \"{}*\" is protected",
                short(prefix)
            );
            let help =
                "repeat its `allow`, `deny` or `auth` here, or write auth = false: routes inherit only from their site";
            check.warning(Code::Dangerous, *span, message, help);
        }
    }
}
