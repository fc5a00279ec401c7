//! Parses `cache` of a site or route.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::binding::{self, Section, WrittenKey};
use crate::context::Check;
use crate::file::{Node, Table, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::ResponseCache;
use crate::units;
use crate::value::{field, typed};

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

/// Reads `statuses`. Invalid entries are reported and left out.
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

/// Returns true for the status of a response that can be stored: a part of a body and a confirmation cannot.
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
