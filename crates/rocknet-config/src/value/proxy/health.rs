//! Parses `health` of a proxy: the health checks of its upstreams.

use std::collections::BTreeMap;

use super::headers;
use crate::binding::{self, Section};
use crate::context::Check;
use crate::file::{Node, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::Health;
use crate::template::{Scope, Template};

/// Reads `health`. `proxy_fields`: header fields that the proxy sets in requests, which checks inherit.
pub(super) fn build(check: &mut Check<'_>, node: &Node, proxy_fields: &BTreeMap<String, String>) -> Option<Health> {
    let (path, table) = match &node.value {
        Value::Table(table) => match table.node("path") {
            Some(path) => (path, Some(table)),
            None => {
                let help = "write path = \"/healthz\" in it";
                check.error(Code::Missing, node.span, "`health` has no `path`", help);
                return None;
            }
        },
        _ => (node, None),
    };
    let written = path.written()?;
    let text = &written.value;
    if !text.starts_with('/') || !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        let message = format!("`health`: \"{}\" is not a path", short(written.as_written()));
        check.bad_text(written, path.span, message, "write \"/healthz\"");
        return None;
    }
    let check_fields = table
        .map(|table| headers::build(check, table, false))
        .unwrap_or_default();
    let is_overridden = |name: &str| check_fields.keys().any(|field| field.eq_ignore_ascii_case(name));
    // A check has no client, whose values a placeholder stands for.
    let constant = |value: &str| Some(Template::parse(value, Scope::Request).ok()?.as_constant()?.to_owned());
    let inherited: BTreeMap<String, String> = proxy_fields
        .iter()
        .filter(|(name, _)| !is_overridden(name))
        .filter_map(|(name, value)| Some((name.clone(), constant(value)?)))
        .collect();
    let base = Health::of(text.clone());
    let mut health = Health {
        // An empty value removes a field of the client, and checks have no client.
        headers: inherited
            .iter()
            .chain(&check_fields)
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        ..base
    };
    binding::read(check, Section::Health, table, &mut health);
    Some(health)
}
