//! Parses `limit`: limits of requests by client or by another key.

use std::time::Duration;

use crate::context::Check;
use crate::file::{Node, Table, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{Excess, Limit, RequestRate};
use crate::template::{NAMES, Scope, Template, TemplateError};
use crate::units::{self, UnitError};
use crate::value::{access, typed};

/// Maximum number of limits of one route. Each request is counted in every limit.
const MAX_LIMITS: usize = 16;

/// Longest time until a used limit is full again. A longer time is surely a mistake in `burst`.
const MAX_REFILL: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Longest delay of a request. It is below the default of `answer_timeout`, after which a waiting request gets 503.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// Help for a limit without a rate.
const EXAMPLE: &str = "write the number of requests per second, minute or hour: limit = \"10/s\"";

/// Reads the limits of a site or route. Invalid limits are reported and left out.
pub(crate) fn build(check: &mut Check<'_>, node: &Node) -> Vec<Limit> {
    match &node.value {
        Value::Boolean(false) => return Vec::new(),
        Value::Boolean(true) => {
            check.error(Code::BadValue, node.span, "`limit = true` names no rate", EXAMPLE);
            return Vec::new();
        }
        _ => {}
    }
    let items = typed::elements(node);
    if items.len() > MAX_LIMITS {
        let message = format!("`limit` has more than {MAX_LIMITS} limits");
        check.error(Code::BadValue, node.span, message, "remove some of them");
        return Vec::new();
    }
    let mut all: Vec<Limit> = Vec::with_capacity(items.len());
    for item in items {
        let Some(limit) = limit(check, item) else { continue };
        if all.contains(&limit) {
            check.error(
                Code::Conflict,
                item.span,
                "the limit is written twice",
                "remove one of the two",
            );
            continue;
        }
        all.push(limit);
    }
    all
}

/// Reads one limit: a rate, or a table; `None` after an error.
fn limit(check: &mut Check<'_>, node: &Node) -> Option<Limit> {
    let Value::Table(table) = &node.value else {
        return Some(Limit::at(rate(check, node)?));
    };
    let Some(written) = table.node("rate") else {
        let help = "write { rate = \"10/s\", … }";
        check.error(Code::Missing, node.span, "the limit has no `rate`", help);
        return None;
    };
    let mut limit = Limit::at(rate(check, written)?);
    let table = Some(table);
    limit.burst = typed::integer(table, "burst").unwrap_or(limit.burst);
    limit.dry_run = typed::boolean(table, "dry_run").unwrap_or(false);
    limit.excess = excess(table);
    if let Some(exempt) = table.and_then(|table| table.node("exempt")) {
        limit.exempt = access::ranges(check, "exempt", exempt);
    }
    if let Some(key) = table.and_then(|table| table.node("key")) {
        limit.key = self::key(check, key);
    }
    check_times(check, node, table?, &limit);
    Some(limit)
}

/// Reads a rate; `None` after an error.
fn rate(check: &mut Check<'_>, node: &Node) -> Option<RequestRate> {
    let written = node.written()?;
    match units::request_rate(&written.value) {
        Ok(rate) => Some(rate),
        Err(UnitError(help)) => {
            let message = format!("\"{}\" is not a rate of requests", short(written.as_written()));
            check.bad_text(written, node.span, message, help);
            None
        }
    }
}

/// Reads `delay`.
fn excess(table: Option<&Table>) -> Excess {
    match typed::integer(table, "delay") {
        Some(after) => Excess::Delayed { after },
        None if typed::boolean(table, "delay") == Some(true) => Excess::Delayed { after: 1 },
        None => Excess::Immediate,
    }
}

/// Reads `key`; `None` for the client, and after an error.
fn key(check: &mut Check<'_>, node: &Node) -> Option<String> {
    let written = node.written()?;
    let text = written.value.as_str();
    if text == "{client.ip}" {
        return None;
    }
    if text.is_empty() {
        let help = "remove it: the default is \"{client.ip}\"";
        check.bad_text(written, node.span, "`key` is empty", help);
        return None;
    }
    if let Err(TemplateError { message, help }) = Template::parse(text, Scope::Request) {
        check.bad_text(written, node.span, format!("`key`: {message}"), help);
        return None;
    }
    let is_name = |name: &str| name == text || name.ends_with('.') && text.starts_with(name);
    if NAMES.iter().any(|named| is_name(named.name)) {
        let message = format!("`key`: \"{}\" is a text that is the same for all requests", short(text));
        check.bad_text(written, node.span, message, format!("write \"{{{}}}\"", short(text)));
        return None;
    }
    Some(text.to_owned())
}

/// Reports a burst that lasts too long, and a delay without effect.
fn check_times(check: &mut Check<'_>, node: &Node, table: &Table, limit: &Limit) {
    let span = |key: &str| table.node(key).map_or(node.span, |node| node.span);
    let refill = limit.rate.interval().saturating_mul(limit.burst);
    if refill > MAX_REFILL {
        let message = format!(
            "{} requests at {} take {}, and the maximum is {}",
            limit.burst,
            limit.rate,
            units::format_duration(refill),
            units::format_duration(MAX_REFILL),
        );
        check.error(Code::BadValue, span("burst"), message, "write a smaller `burst`");
    } else if limit.max_delay() > MAX_DELAY {
        let message = format!(
            "the last of {} requests would wait {}, and the maximum is {}",
            limit.burst,
            units::format_duration(limit.max_delay()),
            units::format_duration(MAX_DELAY),
        );
        check.error(
            Code::BadValue,
            span("burst"),
            message,
            "write a smaller `burst`, or remove `delay`",
        );
    } else if let Excess::Delayed { after } = limit.excess
        && limit.max_delay().is_zero()
    {
        let message = format!("`delay` has no effect: `burst` admits only {} at once", limit.burst);
        let help = format!("write a `burst` above {after}, or remove `delay`");
        check.warning(Code::Useless, span("delay"), message, help);
    }
}
