//! Parses `limit`: limits of requests by client or by another key.

use std::time::Duration;

use crate::context::Check;
use crate::file::{Node, Table, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{Amount, BandwidthLimit, Excess, Limit, RateLimit, RateUnit, RequestRate};
use crate::template::{NAMES, Scope, Template, TemplateError};
use crate::units::{self, UnitError};
use crate::value::{access, typed};

/// Maximum number of limits of one route. Each request is counted in every limit.
const MAX_LIMITS: usize = 16;

/// Longest time until a client that has used up its burst may send a whole burst again. A longer time is surely a
/// mistake in `burst`.
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
        // Two limits of bandwidth are the same if both are shared or both are not, and if their keys are equal.
        let bandwidth = |limit: &Limit| match limit.amount {
            Amount::Bandwidth(bandwidth) => Some((bandwidth.is_shared, limit.key.clone())),
            Amount::Rate(_) | Amount::Connections(_) => None,
        };
        let own = bandwidth(&limit);
        if own.is_some() && all.iter().any(|other| bandwidth(other) == own) {
            let message = "`bandwidth` is limited twice";
            let help = "remove one of the two, or give them different keys";
            check.error(Code::Conflict, item.span, message, help);
            continue;
        }
        // Both would count in one table, so each request would count twice.
        if all
            .iter()
            .any(|other| other.amount == limit.amount && other.key == limit.key)
        {
            let message = "the limit is written twice";
            check.error(
                Code::Conflict,
                item.span,
                message,
                "remove one of the two, or give them different keys",
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
        return Some(Limit::of(Amount::Rate(RateLimit::at(rate(check, node)?))));
    };
    let written: Vec<_> = ["rate", "connections", "bandwidth"]
        .into_iter()
        .filter_map(|key| Some((key, table.node(key)?)))
        .collect();
    let amount = match written[..] {
        [("rate", rate)] => Amount::Rate(rate_limit(check, node, table, rate)?),
        [("connections", _)] => {
            without_effect(check, table, "connections", &["burst", "delay", "after"]);
            Amount::Connections(typed::integer(Some(table), "connections")?)
        }
        [(_, bandwidth)] => {
            let is_shared = table.node("key").is_some();
            without_effect(check, table, "bandwidth", &["burst", "delay", "dry_run"]);
            if is_shared {
                without_effect(check, table, "key", &["after"]);
            } else if let Some(node) = table.node("exempt") {
                let message = "`exempt` has no effect with `bandwidth` of each response";
                let help =
                    "remove it, or add key = \"{client.ip}\", so that the responses to a client share the bandwidth";
                check.warning(Code::Useless, node.span, message, help);
            }
            Amount::Bandwidth(BandwidthLimit {
                rate: typed::rate(bandwidth)?,
                after: typed::size(Some(table), "after").filter(|_| !is_shared).unwrap_or(0),
                is_shared,
            })
        }
        [(first, _), (second, other), ..] => {
            let message = format!("a limit has only one of `{first}` and `{second}`");
            let help = "write two limits: limit = [{ rate = \"10/s\" }, { connections = 20 }]";
            check.error(Code::Conflict, other.span, message, help);
            return None;
        }
        [] => {
            let help = "write { rate = \"10/s\", … }, { connections = 20, … } or { bandwidth = \"1MiB/s\", … }";
            let message = "the limit has neither `rate`, `connections` nor `bandwidth`";
            check.error(Code::Missing, node.span, message, help);
            return None;
        }
    };
    let mut limit = Limit::of(amount);
    limit.dry_run = typed::boolean(Some(table), "dry_run").unwrap_or(false);
    if let Some(exempt) = table.node("exempt") {
        limit.exempt = access::ranges(check, "exempt", exempt);
    }
    if let Some(key) = table.node("key") {
        limit.key = self::key(check, key);
    }
    Some(limit)
}

/// Reads a rate with its burst and delay; `None` after an error. `node`: the whole limit.
fn rate_limit(check: &mut Check<'_>, node: &Node, table: &Table, written: &Node) -> Option<RateLimit> {
    let mut limit = RateLimit::at(rate(check, written)?);
    without_effect(check, table, "rate", &["after"]);
    limit.burst = typed::integer(Some(table), "burst").unwrap_or(limit.burst);
    limit.excess = excess(Some(table));
    check_times(check, node, table, &limit);
    Some(limit)
}

/// Warns of `keys`, which have no effect in a limit with the key `amount`.
fn without_effect(check: &mut Check<'_>, table: &Table, amount: &str, keys: &[&str]) {
    for key in keys {
        if let Some(node) = table.node(key) {
            let message = format!("`{key}` has no effect with `{amount}`");
            check.warning(Code::Useless, node.span, message, "remove it");
        }
    }
}

/// Reads a rate; `None` after an error.
fn rate(check: &mut Check<'_>, node: &Node) -> Option<RequestRate> {
    let written = node.written()?;
    match request_rate(&written.value) {
        Ok(rate) => Some(rate),
        Err(UnitError(help)) => {
            let message = format!("\"{}\" is not a rate of requests", short(written.as_written()));
            check.bad_text(written, node.span, message, help);
            None
        }
    }
}

/// Reads `delay`: the number of requests of a burst that do not wait. With `true`, only the first one does not wait.
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
    // A placeholder without its braces, such as `host`. A name that ends with a dot, such as `query.`, is followed by
    // the name of a parameter.
    let is_name = |name: &str| name == text || name.ends_with('.') && text.starts_with(name);
    if NAMES.iter().any(|named| is_name(named.name)) {
        let message = format!("`key`: \"{}\" is a text that is the same for all requests", short(text));
        check.bad_text(written, node.span, message, format!("write \"{{{}}}\"", short(text)));
        return None;
    }
    Some(text.to_owned())
}

/// Reports a burst whose refill or delay takes too long, and a delay without effect.
fn check_times(check: &mut Check<'_>, node: &Node, table: &Table, limit: &RateLimit) {
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

/// Parses a rate of requests: `"10/s"`, `"100/m"` or `"1000/h"`.
fn request_rate(text: &str) -> Result<RequestRate, UnitError> {
    let general = || UnitError("write a number of requests per second, minute or hour: \"10/s\"".to_owned());
    let (number, rest) = units::leading_number(text.trim()).ok_or_else(general)?;
    // nginx writes `10r/s`.
    let unit = rest.strip_prefix('r').unwrap_or(rest).trim_start().strip_prefix('/');
    let per = match unit.map(str::trim).unwrap_or_default() {
        "s" | "sec" | "second" => RateUnit::Second,
        "m" | "min" | "minute" => RateUnit::Minute,
        "h" | "hour" => RateUnit::Hour,
        _ => return Err(general()),
    };
    let requests = u32::try_from(number)
        .ok()
        .filter(|number| (1..=MAX_REQUESTS).contains(number));
    let Some(requests) = requests else {
        return Err(UnitError(format!("write a number from 1 to {MAX_REQUESTS}")));
    };
    let rate = RequestRate { requests, per };
    // Only one spelling is accepted. Others, such as `10r/s`, get it as their help.
    match rate.to_string() == text {
        true => Ok(rate),
        false => Err(UnitError(format!("write \"{rate}\""))),
    }
}

/// Maximum number of requests per unit of time. A server that could handle more needs no limit.
const MAX_REQUESTS: u32 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_requests_have_a_unit_of_time() {
        for (text, want) in [
            ("10/s", Ok((10, 1))),
            ("100/m", Ok((100, 60))),
            ("1000/h", Ok((1000, 3600))),
            ("10r/s", Err("\"10/s\"")),
            ("5/min", Err("\"5/m\"")),
            (" 5 / hour", Err("\"5/h\"")),
            ("10", Err("\"10/s\"")),
            ("10/d", Err("per second")),
            ("0/s", Err("from 1 to")),
            ("1000001/s", Err("from 1 to")),
            ("99999999999999999999/s", Err("per second")),
            ("-1/s", Err("per second")),
            ("1.5/s", Err("per second")),
            ("ä", Err("per second")),
            ("", Err("per second")),
        ] {
            match (request_rate(text), want) {
                (Ok(got), Ok((requests, seconds))) => {
                    assert_eq!(
                        (got.requests, got.per.length().as_secs()),
                        (requests, seconds),
                        "{text}"
                    );
                }
                (Err(UnitError(help)), Err(part)) => assert!(help.contains(part), "{text}: {help}"),
                (got, want) => panic!("{text}: {got:?}, not {want:?}"),
            }
        }
    }
}
