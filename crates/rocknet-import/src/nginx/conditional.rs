//! Translates `if` blocks to rules.

use crate::condition::{Conditions, both};
use crate::directive::Directive;
use crate::document::{Notes, RuleStage, Site};
use crate::file_rules::RESOLVED;
use crate::value::Value;

use super::area::LocationArea;
use super::restriction::{refuses, restricts};
use super::{action, test};

/// Translates an `if`. `area`: paths of its location; `None` for a server. `guard`: alternative sets of conditions,
/// one of which must hold for nginx to reach the `if`. A `break` in the block adds the negation of its test to `guard`,
/// which then applies to the directives that follow.
pub(super) fn translate(block: &Directive, site: &mut Site, area: Option<&LocationArea>, guard: &mut Vec<Conditions>) {
    let Some(tests) = test::conditions(block) else {
        let message = "the condition has no counterpart: write a rule, [[site.\"…\".rule]], with `path`, `header`, `cookie`, \
             `query` or `client`";
        return match restricts(block) {
            true => site.skip_restriction(block, message),
            false => site.skip(block, message),
        };
    };
    if let Some(difference) = test::difference(block) {
        // A `break` is an exception from the refusals that follow.
        let is_exception = block.children().iter().any(|d| d.is("break"));
        match is_exception || difference.weakens_refusals && restricts(block) {
            true => site.weakens(block, difference.message),
            false => site.differs(block, difference.message),
        }
    }
    let combined = both(guard, &tests);
    let stage = area.map_or(RuleStage::Site, |area| area.stage);
    let every = vec!["/*".to_owned()];
    let has_request_uri = block.arguments.iter().any(|word| word.contains("$request_uri"));
    for inner in block.children() {
        match inner.name.as_str() {
            "return" => {
                let is_whole = area.is_none_or(LocationArea::is_site);
                let patterns = area.map_or(&every, |area| &area.patterns);
                match action::keys(inner, is_whole) {
                    // nginx tests a refusal again for the index file or fallback that a request leads to, and so
                    // does a rule with `resolved = true`. No second test is needed here, because `$request_uri`
                    // remains the target that the client has sent.
                    Some(mut keys) if has_request_uri && refuses(inner) => {
                        keys.push((RESOLVED, Value::Flag(false)));
                        action::add(inner, site, stage, area, patterns, &combined, &keys);
                    }
                    Some(keys) => action::add(inner, site, stage, area, patterns, &combined, &keys),
                    None if refuses(inner) => site.skip_restriction(inner, "write a rule with `respond`"),
                    None => site.skip(inner, "write a rule with `redirect` or `respond`"),
                }
            }
            "rewrite" => action::rewrite(inner, site, area, &combined),
            "break" => match &tests[..] {
                // Only a single condition can be negated.
                [conditions] if conditions.len() == 1 => {
                    let others = vec![vec![conditions[0].clone().negated_if(true)]];
                    *guard = both(guard, &others);
                }
                _ => site.skip(inner, "write an exception, `unless`, into the rules that follow"),
            },
            "access_log" | "log_not_found" => {
                site.skip(inner, "the access log has every request of the site");
            }
            _ if restricts(block) => site.skip_restriction(inner, "a rule has one action: write a route"),
            _ => site.skip(
                inner,
                "rules rewrite, redirect or respond: write a route with these settings",
            ),
        }
    }
}

/// Returns true if a block has a `return`, and no directive before it may end the evaluation.
pub(super) fn always_returns(block: &Directive) -> bool {
    let ends = |d: &Directive| d.is("break") || d.is("rewrite") && matches!(d.argument(2), "last" | "break");
    let mut before = block.children().iter().take_while(|d| !d.is("return"));
    block.children().iter().any(|d| d.is("return"))
        && !before.any(|d| ends(d) || d.is("if") && d.children().iter().any(ends))
}
