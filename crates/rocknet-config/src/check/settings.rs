//! Reads the settings of a site or route on top of the inherited settings. A key of a handler or of access control
//! replaces the whole inherited value. Tables and maps of other keys are merged with the inherited ones.

use std::collections::BTreeMap;

use crate::binding::{Kind, Section, SettingGroup, WrittenKey};
use crate::check::{access, application};
use crate::context::Check;
use crate::file::{Entry, Table, Value};
use crate::finding::Code;
use crate::keys;
use crate::model::{Settings, SourceSpan};

/// Reads the keys of a site or route into a copy of the inherited settings. The keys are read in the order of the table
/// of keys, where `root` comes before the keys that depend on it.
pub(super) fn build(check: &mut Check<'_>, section: Section, table: &Table, base: &Settings) -> Settings {
    let mut settings = base.clone();
    // Keys that are bound to no part of the model, such as `route` and `rule`, are read by other modules.
    for key in keys::within(section).filter(|key| !key.targets.is_empty()) {
        let Some(entry) = table.entries.get(key.name) else {
            continue;
        };
        // Keys of these two groups replace the whole inherited value, so the spans of the inherited keys are removed.
        // Tables and maps of other groups are merged.
        if matches!(key.group, Some(SettingGroup::Handler | SettingGroup::Access)) {
            remove_spans(&mut settings, key.name);
        }
        record_spans(check, &mut settings.key_spans, key.name, &key.kind, entry);
        if let Some(read) = key.bound::<Settings>().and_then(|bound| bound.binding.read) {
            read(check, &WrittenKey { kind: &key.kind, entry }, &mut settings);
        }
    }
    resolve_handler(check, table, &mut settings);
    access::conflict(check, table, &settings);
    if !settings.key_spans.contains_key("index") {
        settings.index = Settings::default_index(settings.php.is_some());
    }
    settings
}

/// Records the spans of a key and of the keys of its table. A key whose value is always a table gets no span, because
/// its inner keys have spans. A map of the site or route itself, such as `headers`, gets no span here, because its
/// parser records the spans of the entries. A map within a table, such as `headers` of `proxy`, gets one span.
pub(super) fn record_spans(
    check: &Check<'_>,
    spans: &mut BTreeMap<String, SourceSpan>,
    name: &str,
    kind: &Kind,
    entry: &Entry,
) {
    if let (Some(section), Value::Table(table)) = (nested_section(kind), &entry.node.value) {
        for (inner, entry) in &table.entries {
            let path = format!("{name}.{inner}");
            match keys::find(section, inner) {
                Some(key) if !matches!(key.kind, Kind::Map { .. }) => {
                    record_spans(check, spans, &path, &key.kind, entry);
                }
                _ => {
                    spans.insert(path, check.source_span(entry.key));
                }
            }
        }
    }
    if !matches!(kind, Kind::Map { .. } | Kind::Table(_)) {
        spans.insert(name.to_owned(), check.source_span(entry.key));
    }
}

/// Returns the section of the table that a kind of value accepts; `None` if it accepts no table.
fn nested_section(kind: &Kind) -> Option<Section> {
    match kind {
        Kind::Table(section) => Some(*section),
        Kind::Either(kinds) => kinds.iter().find_map(nested_section),
        _ => None,
    }
}

/// Removes the spans of a key and of the keys of its table.
fn remove_spans(settings: &mut Settings, key: &str) {
    // The range contains `key` and all names that begin with `key.`, because `/` is the character after `.` in ASCII.
    // A longer key such as `key_file` is outside the range, because `_`, digits and letters are greater than `/`.
    let range = key.to_owned()..format!("{key}/");
    let names: Vec<String> = settings.key_spans.range(range).map(|(name, _)| name.clone()).collect();
    for name in names {
        settings.key_spans.remove(&name);
    }
}

/// Reads the application, and removes the inherited handler if this table names another handler. Also warns of a
/// `run_on` without effect.
fn resolve_handler(check: &mut Check<'_>, table: &Table, settings: &mut Settings) {
    let has = |key: &str| table.entries.contains_key(key);
    // A route with `root` or `alias` serves files, even if its site is proxied.
    if (has("root") || has("alias")) && !has("proxy") {
        settings.proxy = None;
        remove_spans(settings, "proxy");
    }
    if has("controller") {
        // Only an inherited proxy is removed. If the table sets both, the controller takes precedence over the proxy.
        if settings.controller.is_some() && !has("proxy") {
            settings.proxy = None;
            remove_spans(settings, "proxy");
        }
    } else if has("root") || has("alias") || has("proxy") {
        settings.controller = None;
        remove_spans(settings, "controller");
    }
    if let (Some(entry), true) = (table.entries.get("run_on"), settings.isolate) {
        let message = "`run_on` has no effect with `isolate = true`: the controller runs in a process of its own";
        check.warning(Code::Useless, entry.node.span, message, "remove one of the two");
    }
    for key in application::build(check, table, settings) {
        remove_spans(settings, key);
    }
}
