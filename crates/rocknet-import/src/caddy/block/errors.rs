//! Translates `handle_errors` to pages of errors.

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::error_page;
use crate::value::Value;

/// Statuses of errors for which a page is set if `handle_errors` names none.
const ERRORS: [&str; 7] = ["400", "403", "404", "410", "500", "502", "503"];

/// Translates `handle_errors` with a rewrite to one page for all statuses, or to a page for each, such as
/// `rewrite * /{err.status_code}.html`.
pub(super) fn handle_errors(directive: &Directive, statuses: &[&str], site: &mut Site) {
    let rewrites = |child: &&Directive| child.is("rewrite");
    let mut targets = directive.children().iter().filter(rewrites).map(|child| child.words());
    let is_plain = |child: &Directive| matches!(child.name.as_str(), "rewrite" | "file_server" | "root");
    let is_status = |status: &&str| status.len() == 3 && status.parse::<u64>().is_ok_and(|status| status >= 400);
    let page = match (targets.next().as_deref(), targets.next()) {
        (Some(["*", page] | [page]), None) if directive.children().iter().all(is_plain) => (*page).to_owned(),
        _ => String::new(),
    };
    // `{}` marks the place of the status.
    let page = page
        .replace("{http.error.status_code}", "{err.status_code}")
        .replace("{err.status_code}", "{}");
    if !page.starts_with('/') || page.replace("{}", "").contains('{') || !statuses.iter().all(is_status) {
        let message = "write `errors` with a page for each status: errors = { 404 = \"/404.html\" }";
        return site.skip(directive, message);
    }
    if error_page::is_script(&page) {
        return site.skip(directive, error_page::MESSAGE);
    }
    let statuses = if statuses.is_empty() { &ERRORS[..] } else { statuses };
    for status in statuses {
        site.settings.set_entry(
            "errors",
            status,
            Value::Text(page.replace("{}", status)),
            directive.line,
        );
    }
}
