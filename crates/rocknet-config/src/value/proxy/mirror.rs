//! Parses `mirror` of a proxy: the server that receives copies of requests.

use super::upstreams::{EXAMPLE, upstream};
use crate::binding::{self, Section};
use crate::context::Check;
use crate::file::{Node, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::Mirror;
use crate::value::typed;

/// Reads `mirror`; `None` if it is invalid.
pub(super) fn build(check: &mut Check<'_>, node: &Node) -> Option<Mirror> {
    let (to, table) = match &node.value {
        Value::Table(table) => match table.node("to") {
            Some(to) => (to, Some(table)),
            None => {
                let help = "write to = \"http://127.0.0.1:3001\" in it";
                check.error(Code::Missing, node.span, "`mirror` has no `to`", help);
                return None;
            }
        },
        _ => (node, None),
    };
    let written = to.written()?;
    if let Some((scheme, _)) = written.value.split_once("://")
        && scheme != "http"
    {
        let message = format!("`mirror` cannot send copies to \"{}\"", short(typed::as_written(to)));
        check.bad_text(
            written,
            to.span,
            message,
            "write \"http://host:port\" or \"unix:/path\"",
        );
        return None;
    }
    // A mirror has no key `http2`.
    let http2 = false;
    let upstream = upstream(check, to, http2)?;
    // Not reached, because the check above refuses every scheme except `http`, and Unix sockets have no TLS.
    if upstream.is_secure || upstream.http2 {
        let message = "`mirror` sends copies in HTTP/1.1 without TLS";
        check.error(Code::BadValue, to.span, message, EXAMPLE);
        return None;
    }
    let mut mirror = Mirror::to(upstream);
    if let Some(share) = table
        .and_then(|table| table.node("share"))
        .and_then(|node| share(check, node))
    {
        mirror.share = share;
    }
    binding::read(check, Section::Mirror, table, &mut mirror);
    Some(mirror)
}

/// Reads a percentage, such as `"10%"` or `"0.5%"`. Returns the number of requests out of 10,000.
fn share(check: &mut Check<'_>, node: &Node) -> Option<u32> {
    let written = node.written()?;
    let share = percent(&written.value);
    if share.is_none() {
        let message = format!("`share` cannot be \"{}\"", short(written.as_written()));
        check.bad_text(written, node.span, message, "write a percentage: \"10%\" or \"0.5%\"");
    }
    share
}

/// Parses a percentage with at most two decimal places, above 0. Returns the number of requests out of 10,000.
fn percent(text: &str) -> Option<u32> {
    let number = text.strip_suffix('%')?.trim_end();
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |text: &str| !text.is_empty() && text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 2 {
        return None;
    }
    let hundredths = format!("{part:0<2}").parse::<u32>().ok()?;
    let share = whole.parse::<u32>().ok()? * 100 + hundredths;
    (1..=Mirror::ALL).contains(&share).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parsed() {
        for (text, expected) in [
            ("10%", Some(1000)),
            ("100%", Some(10_000)),
            ("0.5%", Some(50)),
            ("0.01%", Some(1)),
            ("12.5 %", Some(1250)),
            ("0%", None),
            ("100.1%", None),
            ("0.001%", None),
            ("10", None),
            (".5%", None),
            ("-1%", None),
            ("%", None),
        ] {
            assert_eq!(percent(text), expected, "{text}");
        }
    }
}
