//! Parses `cache` of a site or route.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::binding::{self, Section, WrittenKey};
use crate::context::Check;
use crate::file::{Node, Table, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{ResponseCache, ResponseDisk};
use crate::template::{Placeholder, Scope, Template, TemplateError};
use crate::units;
use crate::value::{condition, field, typed};

/// Reads `cache`; `None` if it is off or invalid. A table turns the cache on.
pub(crate) fn build(check: &mut Check<'_>, node: &Node) -> Option<ResponseCache> {
    match &node.value {
        Value::Boolean(true) => Some(ResponseCache::default()),
        Value::Table(table) => {
            let mut cache = ResponseCache::default();
            binding::read(check, Section::ResponseCache, Some(table), &mut cache);
            Some(cache)
        }
        _ => None,
    }
}

/// Reads `statuses`. Invalid entries are left out. This function reports invalid statuses; the check of the keys has
/// reported invalid durations.
pub(crate) fn statuses(check: &mut Check<'_>, written: &WrittenKey<'_>, cache: &mut ResponseCache) {
    let entries = written.entry.node.as_table().map(Table::in_order).unwrap_or_default();
    let mut statuses: BTreeMap<u16, Duration> = BTreeMap::new();
    for (name, entry) in entries {
        let status = name
            .parse::<u16>()
            .ok()
            .filter(|status| name.len() == 3 && is_storable(*status));
        let Some(status) = status else {
            let message = format!("\"{}\" is not the status of a response that can be stored", short(name));
            let help = "write a number from 200 to 599, except 206 and 304: statuses = { 404 = \"1m\" }";
            check.error(Code::BadValue, entry.key, message, help);
            continue;
        };
        if let Some(time) = entry.node.as_text().and_then(|text| units::duration(text).ok()) {
            statuses.insert(status, time);
        }
    }
    cache.statuses = statuses;
}

/// Returns true for the status of a response that can be stored. A part of a body (206) and a confirmation without a
/// body (304) cannot.
fn is_storable(status: u16) -> bool {
    (200..600).contains(&status) && !matches!(status, 206 | 304)
}

/// Reads `bypass_cookies`. Invalid names are reported and left out.
pub(crate) fn bypass_cookies(check: &mut Check<'_>, written: &WrittenKey<'_>, cache: &mut ResponseCache) {
    let mut names = Vec::new();
    for (element, span) in typed::texts(&written.entry.node) {
        let text = element.value.as_str();
        let stem = text.strip_suffix('*').unwrap_or(text);
        let is_name = !text.is_empty() && !stem.contains('*') && stem.bytes().all(field::is_token_byte);
        if is_name {
            names.push(text.to_owned());
        } else {
            let message = format!("\"{}\" is not the name of a cookie", short(element.as_written()));
            let help = "write names; `*` at the end stands for any text: bypass_cookies = [\"wordpress_logged_in_*\"]";
            check.bad_text(element, span, message, help);
        }
    }
    cache.bypass_cookies = names;
}

/// Reads `bypass`. `exists` is an error, because a lookup in the store does not wait for the disk.
pub(crate) fn bypass(check: &mut Check<'_>, written: &WrittenKey<'_>, cache: &mut ResponseCache) {
    let node = &written.entry.node;
    for table in typed::elements(node).iter().filter_map(Node::as_table) {
        if let Some(entry) = table.entries.get("exists") {
            let help = "remove it, or use another condition";
            check.error(Code::BadValue, entry.key, "`bypass` cannot depend on files", help);
        }
    }
    // `bypass = []` is permitted, but `condition::sets` would report it.
    if typed::elements(node).is_empty() {
        return;
    }
    cache.bypass = condition::sets(check, "bypass", node, "bypass = { query = { preview = \"*\" } }");
}

/// Reads `key`. A template that does not distinguish requests is an error.
pub(crate) fn key(check: &mut Check<'_>, written: &WrittenKey<'_>, cache: &mut ResponseCache) {
    let node = &written.entry.node;
    let Some(text) = node.written() else { return };
    let template = match Template::parse(&text.value, Scope::Request) {
        Ok(template) => template,
        Err(TemplateError { message, help }) => {
            return check.bad_text(text, node.span, format!("`key`: {message}"), help);
        }
    };
    let has_path = |placeholder: &Placeholder| matches!(placeholder, Placeholder::Path | Placeholder::Target);
    if !template.placeholders().any(has_path) {
        let message = "`key` has neither `{path}` nor `{target}`, so all pages would have the same response";
        return check.bad_text(text, node.span, message, "write key = \"{host}{path}?{query}\"");
    }
    let is_unique = |placeholder: &Placeholder| {
        matches!(
            placeholder,
            Placeholder::RequestId | Placeholder::UnixTime | Placeholder::ClientPort
        )
    };
    if template.placeholders().any(is_unique) {
        let message =
            "`key` has a placeholder whose value differs for each request, so no response would be used again";
        return check.bad_text(text, node.span, message, "remove it");
    }
    cache.key = Some(text.value.clone());
}

/// Reads `memory`.
pub(crate) fn memory(_: &mut Check<'_>, written: &WrittenKey<'_>, cache: &mut ResponseCache) {
    cache.memory = size(&written.entry.node);
}

/// Minimum quota of a site on disk in bytes. A smaller one is surely a mistake.
const MIN_QUOTA: u64 = 1 << 20;

/// Reads `disk`. `true` means that the site has no quota. So does an invalid value, which the check of the keys has
/// reported.
pub(crate) fn disk(check: &mut Check<'_>, written: &WrittenKey<'_>, cache: &mut ResponseCache) {
    let node = &written.entry.node;
    cache.disk = match (&node.value, size(node)) {
        (Value::Boolean(false), _) | (_, Some(0)) => ResponseDisk::Off,
        (_, Some(quota)) if quota < MIN_QUOTA => {
            let message = format!("`disk` cannot be \"{}\"", units::format_size(quota));
            let help = "write a value from \"1MiB\" to \"64TiB\", or false for no responses on disk";
            return check.error(Code::BadValue, node.span, message, help);
        }
        (_, Some(quota)) => ResponseDisk::Quota(quota),
        (_, None) => ResponseDisk::Shared,
    };
}

/// Returns a size in bytes; `None` if the value is no size.
fn size(node: &Node) -> Option<u64> {
    match &node.value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::Text(text) => units::size(&text.value).ok(),
        _ => None,
    }
}
