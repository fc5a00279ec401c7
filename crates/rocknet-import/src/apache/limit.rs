//! Translates `<Limit>` and `<LimitExcept>`, which restrict methods.

use crate::condition::{self, Condition};
use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::file_rules::refusal;
use crate::value::Value;

/// Translates a section that denies, or permits, all requests with its methods, such as `<LimitExcept GET POST>` with
/// `Require all denied`. Returns false for other directives, and for a section with other restrictions.
pub(super) fn translate(section: &Directive, patterns: &[String], site: &mut Site) -> bool {
    let is_except = section.is("LimitExcept");
    if !is_except && !section.is("Limit") {
        return false;
    }
    let is = |d: &Directive, name: &str, second: &str| d.is(name) && d.argument(1).eq_ignore_ascii_case(second);
    let decides = |d: &&Directive| !d.is("Order");
    let all: Vec<&Directive> = section.children().iter().filter(decides).collect();
    if !all.is_empty() && all.iter().all(|d| is(d, "Require", "granted") || is(d, "Allow", "all")) {
        site.unneeded(section, "the methods are permitted");
        return true;
    }
    if all.is_empty() || !all.iter().all(|d| is(d, "Require", "denied") || is(d, "Deny", "all")) {
        return false;
    }
    let mut conditions = vec![condition::methods_of(section).negated_if(is_except)];
    if !patterns.iter().any(|pattern| pattern == "/*") {
        conditions.insert(0, Condition::new("path", Value::texts(patterns)));
    }
    let Some(mut keys) = condition::keys(&conditions) else {
        return false;
    };
    keys.extend(refusal(403));
    site.rule(section, keys);
    true
}
