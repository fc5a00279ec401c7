//! Checks `[tracing]`.

use crate::context::Check;
use crate::file::{Node, Table};
use crate::finding::Code;
use crate::message::short;
use crate::model::{SampleRatio, Secret, Tracing};
use crate::value::proxy::headers;
use crate::value::typed::as_written;

/// Maximum length of a service name in bytes. Every export contains the name, so its length is bounded; usual names
/// are far shorter.
const MAX_SERVICE: usize = 255;

/// Returns the settings of `[tracing]`.
pub(super) fn build(check: &mut Check<'_>, table: Option<&Table>) -> Tracing {
    let Some(table) = table else {
        return Tracing::default();
    };
    let defaults = Tracing::default();
    // Placeholders are not available, because the collector gets the spans of many requests together.
    let fields = headers::build(check, table, false).into_iter();
    Tracing {
        endpoint: table.node("endpoint").and_then(|node| endpoint(check, node)),
        sample: (table.node("sample").and_then(|node| sample(check, node))).unwrap_or(defaults.sample),
        service: (table.node("service").and_then(|node| service(check, node))).unwrap_or(defaults.service),
        headers: fields
            .map(|(name, value)| (name, Secret::new(value.into_bytes())))
            .collect(),
    }
}

/// Reads `endpoint`: the URL of a collector. Adds the standard path of OTLP if the URL has none. Returns `None` after
/// an error.
fn endpoint(check: &mut Check<'_>, node: &Node) -> Option<String> {
    let url = node.as_text()?.trim();
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let authority = rest.and_then(|rest| rest.split('/').next());
    // A fragment (`#`) is never sent, and URLs contain none of the other four characters (RFC 3986 §2). The list is not
    // complete: it covers usual mistakes.
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic()) && !url.contains(['#', '"', '\\', '<', '>']);
    let is_host = |authority: &&str| {
        // A `]` at the end belongs to an IPv6 address without a port.
        let (host, port_is_valid) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse::<u16>().is_ok_and(|port| port > 0)),
            _ => (*authority, true),
        };
        // A user name before `@` would not be sent, and no path can be added after the query that `?` begins.
        !host.is_empty() && port_is_valid && !authority.contains(['@', '?'])
    };
    if !is_plain || authority.filter(is_host).is_none() {
        check.error(
            Code::BadValue,
            node.span,
            format!("\"{}\" is not the URL of a collector", short(as_written(node))),
            "write endpoint = \"http://127.0.0.1:4318\"; fields such as an API key belong in `headers`",
        );
        return None;
    }
    let has_path = rest.is_some_and(|rest| rest.split_once('/').is_some_and(|(_, path)| !path.is_empty()));
    Some(match has_path {
        true => url.to_owned(),
        false => format!("{}/v1/traces", url.trim_end_matches('/')),
    })
}

/// Reads `sample`: a percentage of the requests. Returns `None` after an error.
fn sample(check: &mut Check<'_>, node: &Node) -> Option<SampleRatio> {
    let ratio = SampleRatio::parse(node.as_text()?.trim());
    if ratio.is_none() {
        let message = format!("\"{}\" is not a percentage", short(as_written(node)));
        check.error(
            Code::BadValue,
            node.span,
            message,
            "write sample = \"10%\", or \"0.5%\" with at most four decimals",
        );
    }
    ratio
}

/// Reads `service`: the name of this server in traces. Returns `None` after an error.
fn service(check: &mut Check<'_>, node: &Node) -> Option<String> {
    let name = node.as_text()?;
    if name.is_empty() || name.len() > MAX_SERVICE || name.chars().any(char::is_control) {
        let message = format!("`service` takes a name of 1 to {MAX_SERVICE} bytes without control characters");
        check.error(Code::BadValue, node.span, message, "write service = \"shop\"");
        return None;
    }
    Some(name.to_owned())
}
