//! Warns of settings of the response cache that have no effect.

use crate::context::Check;
use crate::file::{Table, Value};
use crate::finding::Code;
use crate::model::{ResponseDisk, Route, Settings};

/// Warns if a site has a cache, and serves only files. `table`: the table of the site.
pub(super) fn check_site(check: &mut Check<'_>, table: &Table, settings: &Settings, routes: &[Route]) {
    let mut all = std::iter::once(settings).chain(routes.iter().map(|route| &route.settings));
    warn(check, table, all.any(makes_responses));
}

/// Warns if a route has a cache, and serves only files, or has a memory or quota of its own. `table`: the table of the
/// route.
pub(super) fn check_route(check: &mut Check<'_>, table: &Table, settings: &Settings) {
    warn(check, table, makes_responses(settings));
    let cache = table.table("cache");
    if let Some(entry) = cache.and_then(|cache| cache.entries.get("memory")) {
        let message = "`memory` has no effect in a route, because the routes of a site share it";
        check.warning(Code::Useless, entry.key, message, "write it in `cache` of the site");
    }
    if let Some(entry) = cache.and_then(|cache| cache.entries.get("disk"))
        && matches!(
            settings.cache.as_ref().map(|cache| cache.disk),
            Some(ResponseDisk::Quota(_))
        )
    {
        let message = "a size of `disk` has no effect in a route, because the quota is that of the site";
        check.warning(Code::Useless, entry.key, message, "write it in `cache` of the site");
    }
}

fn warn(check: &mut Check<'_>, table: &Table, has_effect: bool) {
    let Some(entry) = table.entries.get("cache") else {
        return;
    };
    let is_off = matches!(entry.node.value, Value::Boolean(false));
    // With other errors there is no warning, because one of them may concern the handler.
    if !is_off && !has_effect && !check.has_other_errors() {
        let message = "`cache` has no effect on files, which have a cache of their own";
        check.warning(Code::Useless, entry.key, message, "remove it");
    }
}

/// Returns true if a handler makes responses that are not files.
fn makes_responses(settings: &Settings) -> bool {
    settings.proxy.is_some()
        || settings.controller.is_some()
        || settings.application.is_some()
        || settings.php.is_some()
        || settings.cgi.is_some()
}
