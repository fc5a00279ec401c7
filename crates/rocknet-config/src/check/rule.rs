//! Checks the rules of a site and their actions.

use crate::captures::CaptureNames;
use crate::context::Check;
use crate::file::{Node, Table, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{Conditions, Pattern, Redirect, Rule, RuleAction};
use crate::template::{Scope, Template, TemplateError};
use crate::value::condition::{conditions, exceptions};
use crate::value::{pattern, typed};

/// Maximum number of rules of one site. A request may be compared with each of them.
const MAX_RULES: usize = 256;
/// Maximum size of a response body in a rule, enough for a small page. Larger bodies belong in files.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Keys of the actions. A rule has at most one of them.
const ACTIONS: [&str; 3] = ["rewrite", "redirect", "respond"];

/// Returns the valid rules of a site. Errors are reported to `check`, so a configuration with errors is never served.
pub(super) fn build(check: &mut Check<'_>, site: &Table) -> Vec<Rule> {
    let Some(node) = site.node("rule") else {
        return Vec::new();
    };
    let Value::List(items) = &node.value else {
        return Vec::new();
    };
    if items.len() > MAX_RULES {
        let help = "combine paths with the same action in one rule; `redirects` takes any number";
        check.error(Code::BadValue, node.span, format!("more than {MAX_RULES} rules"), help);
        return Vec::new();
    }
    let tables = items.iter().filter_map(|item| Some((item, item.as_table()?)));
    tables.filter_map(|(item, table)| rule(check, item, table)).collect()
}

/// Reads one rule. `node`: the element of the list. `table`: its table. Returns `None` after an error.
fn rule(check: &mut Check<'_>, node: &Node, table: &Table) -> Option<Rule> {
    let when = conditions(check, table);
    let unless = exceptions(check, table);
    let last = typed::boolean(Some(table), "last").unwrap_or(false);
    let mut written: Vec<_> = ACTIONS.iter().filter_map(|key| table.entries.get(*key)).collect();
    // In the order of the file, so that the error is at the second one.
    written.sort_by_key(|entry| entry.key.start);
    if let [first, second, ..] = written[..] {
        let message = "a rule can have only one action".to_owned();
        check.conflict(second.key, ("the first is here", first.key), message, "write two rules");
        return None;
    }
    for (key, needs) in [("body", "respond"), ("status", "redirect"), ("resolved", "respond")] {
        if let (Some(entry), None) = (table.entries.get(key), table.node(needs)) {
            let message = format!("`{key}` has no effect without `{needs}`");
            check.error(
                Code::Missing,
                entry.key,
                message,
                format!("write `{needs}`, or remove `{key}`"),
            );
            return None;
        }
    }
    let action = if let Some(node) = table.node("rewrite") {
        RuleAction::Rewrite(rewrite(check, &when, node)?)
    } else if let Some(node) = table.node("redirect") {
        redirect(check, &when, !unless.is_empty(), table, node)?
    } else if let Some(node) = table.node("respond") {
        respond(check, table, node)?
    } else if last {
        RuleAction::Pass
    } else {
        let help = "write `rewrite`, `redirect` or `respond`, or `last = true` to end the rules here";
        check.error(Code::Missing, node.span, "the rule has no action", help);
        return None;
    };
    Some(Rule {
        when,
        unless,
        action,
        last,
        resolved: typed::boolean(Some(table), "resolved").unwrap_or(false),
        span: check.source_span(node.span),
    })
}

/// Reads `rewrite`. `when`: the conditions of the rule, to which captures refer. Returns `None` after an error.
fn rewrite(check: &mut Check<'_>, when: &Conditions, node: &Node) -> Option<String> {
    let written = node.written()?;
    let text = written.value.as_str();
    let error = if ["/", "{path}", "{target}"].iter().any(|start| text.starts_with(start)) {
        pattern::target_form(&CaptureNames::of_rule(when), text).err()
    } else {
        let help = "begin it with `/`; use `proxy` for another server, `redirect` for another URL";
        Some((
            format!("\"{}\" is not a path of this site", short(text)),
            help.to_owned(),
        ))
    };
    let error = error.or_else(|| {
        let message = format!("\"{}\" has a fragment, which is never sent to servers", short(text));
        text.contains('#')
            .then(|| (message, "remove the part from `#`".to_owned()))
    });
    if let Some((message, help)) = error {
        check.bad_text(written, node.span, format!("`rewrite`: {message}"), help);
        return None;
    }
    Some(text.to_owned())
}

/// Reads `redirect` and `status`. `when`: the conditions of the rule, to which captures refer. `has_exceptions`: true
/// if the rule has `unless`. Returns `None` after an error.
fn redirect(
    check: &mut Check<'_>,
    when: &Conditions,
    has_exceptions: bool,
    table: &Table,
    node: &Node,
) -> Option<RuleAction> {
    let written = node.written()?;
    let only_paths = Conditions {
        paths: when.paths.clone(),
        ..Conditions::default()
    };
    let names = CaptureNames::of_rule(when);
    let mut error = pattern::target_form(&names, &written.value).err();
    // A target that the paths of the rule match again is refused too. Other conditions might not hold for the
    // redirected request, so only a rule without other conditions is certain to loop.
    if error.is_none() && !has_exceptions && *when == only_paths {
        let every_path = [Pattern::Prefix("/".to_owned())];
        let paths = if when.paths.is_empty() {
            &every_path[..]
        } else {
            &when.paths
        };
        error = paths
            .iter()
            .find_map(|from| pattern::loop_error(from, &names, &written.value));
    }
    if let Some((message, help)) = error {
        check.bad_text(written, node.span, format!("`redirect`: {message}"), help);
        return None;
    }
    let status = typed::integer::<u16>(Some(table), "status").unwrap_or(Redirect::STATUS);
    // A status outside 301 to 308 has been reported as out of range already.
    if !matches!(status, 301 | 302 | 303 | 307 | 308) && (301..=308).contains(&status) {
        let help = "write 301, 302, 303, 307 or 308";
        let span = table.node("status").map_or(node.span, |node| node.span);
        check.error(Code::BadValue, span, format!("{status} is not a redirect status"), help);
        return None;
    }
    Some(RuleAction::Redirect {
        to: written.value.clone(),
        status,
    })
}

/// Reads `respond` and `body`. `node`: the value of `respond`. Returns `None` after an error.
fn respond(check: &mut Check<'_>, table: &Table, node: &Node) -> Option<RuleAction> {
    let status = typed::integer::<u16>(Some(table), "respond")?;
    if (300..400).contains(&status) {
        let message = format!("`respond` cannot be {status}: statuses from 300 to 399 are for redirects");
        check.error(Code::BadValue, node.span, message, "write `redirect` and `status`");
        return None;
    }
    let body = typed::text(Some(table), "body").map(str::to_owned);
    if let (Some(body), Some(node)) = (&body, table.node("body")) {
        if body.len() > MAX_BODY_BYTES {
            let help = "put it in a file, and use `rewrite` or `errors`";
            check.error(Code::BadValue, node.span, "`body` is longer than 64 KiB", help);
            return None;
        }
        if let Err(TemplateError { message, help }) = Template::parse(body, Scope::Request) {
            check.error(Code::BadValue, node.span, format!("`body`: {message}"), help);
            return None;
        }
        if matches!(status, 204 | 205 | 444) {
            let message = match status {
                444 => "with 444 there is no response, and so no body".to_owned(),
                _ => format!("a {status} response has no body"),
            };
            check.error(Code::BadValue, node.span, message, "remove `body`");
            return None;
        }
    }
    Some(RuleAction::Respond { status, body })
}
