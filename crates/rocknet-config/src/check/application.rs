//! Checks `fastcgi`, `scgi` and `uwsgi`: the application of a site or route.

use crate::binding::{self, Section};
use crate::context::Check;
use crate::file::{Entry, Node, Table, Value};
use crate::finding::Code;
use crate::model::{Application, Host, Pattern, Protocol, Settings};
use crate::value::{address, params, path, typed};

/// Maximum number of addresses of one application. A larger group needs a load balancer of its own.
const MAX_ADDRESSES: usize = 256;

/// Reads the application of a site or route. It replaces the inherited application. Returns the keys whose inherited
/// settings no longer apply, so that the caller removes their spans from `key_spans`.
pub(super) fn build(check: &mut Check<'_>, table: &Table, settings: &mut Settings) -> Vec<&'static str> {
    let mut written: Vec<(Protocol, &Entry)> = Protocol::ALL
        .iter()
        .filter_map(|protocol| Some((*protocol, table.entries.get(protocol.key())?)))
        .collect();
    // A key that names an application takes precedence over a key that is `false`.
    written.sort_by_key(|(_, entry)| is_off(entry));
    // Application keys that the table does not contain. Their settings, if any, are inherited.
    let inherited = || {
        let keys = Protocol::ALL.iter().map(|protocol| protocol.key());
        keys.filter(|key| !table.entries.contains_key(*key))
    };
    let &[(protocol, entry), ref others @ ..] = &written[..] else {
        // The table has no application key, but a handler of another kind replaces the inherited application.
        let is_set = |key: &str| table.entries.get(key).is_some_and(|entry| !is_off(entry));
        if !["root", "alias", "proxy", "controller"].into_iter().any(is_set) {
            return Vec::new();
        }
        settings.application = None;
        return inherited().collect();
    };
    // `root` is not a rival, because the application handles the requests in place of files.
    let rivals = ["proxy", "controller"].iter().filter_map(|key| table.entries.get(*key));
    let mut rivals = others.iter().map(|(_, entry)| *entry).chain(rivals);
    if let Some(other) = rivals.find(|other| !is_off(other) && !is_off(entry)) {
        let message = "a site or route can have only one handler".to_owned();
        check.conflict(
            other.key,
            ("the other is here", entry.key),
            message,
            "keep one of the two",
        );
        return Vec::new();
    }
    settings.application = application(check, protocol, &entry.node);
    if settings.application.is_none() {
        return inherited().collect();
    }
    settings.proxy = None;
    settings.controller = None;
    inherited().chain(["proxy", "controller"]).collect()
}

/// Returns true if a key is `false`.
fn is_off(entry: &Entry) -> bool {
    matches!(entry.node.value, Value::Boolean(false))
}

/// Sets the mount path of an application that the route itself names without `mount`: the path of the route's pattern,
/// without trailing slashes. The mount path of a glob or regular expression is empty. An inherited application keeps
/// its mount path.
pub(super) fn mount(table: &Table, pattern: &Pattern, settings: &mut Settings) {
    let Some(application) = &mut settings.application else {
        return;
    };
    let Some(node) = table.node(application.protocol.key()) else {
        return;
    };
    if node.as_table().is_some_and(|table| table.node("mount").is_some()) {
        return;
    }
    let path = match pattern {
        Pattern::Exact(path) | Pattern::Prefix(path) => path.trim_end_matches('/'),
        Pattern::Glob(_) | Pattern::Regex(_) => "",
    };
    path.clone_into(&mut application.mount);
}

/// Reads the key of a protocol, such as `fastcgi`; `None` if the key is `false`, or if an error has been reported.
fn application(check: &mut Check<'_>, protocol: Protocol, node: &Node) -> Option<Application> {
    let key = protocol.key();
    let (nodes, table) = match &node.value {
        Value::Boolean(true) => {
            let message = format!("`{key} = true` names no address");
            check.error(Code::BadValue, node.span, message, EXAMPLE);
            return None;
        }
        Value::Text(_) | Value::List(_) => (node, None),
        Value::Table(table) => match table.node("to") {
            Some(nodes) => (nodes, Some(table)),
            None => {
                let help = "write to = \"unix:/run/app.sock\" in it";
                let message = format!("`{key}` has no `to`");
                check.error(Code::Missing, node.span, message, help);
                return None;
            }
        },
        _ => return None,
    };
    let base = Application::at(protocol, addresses(check, key, nodes)?);
    if let Some(entry) = table.and_then(|table| table.entries.get("keep"))
        && protocol != Protocol::FastCgi
    {
        let message = format!("`keep` has no effect: {protocol} uses a new connection for each request");
        check.error(Code::Conflict, entry.key, message, "remove it");
    }
    let mut application = Application {
        mount: table
            .and_then(|table| table.node("mount"))
            .and_then(|node| path::site_path(check, "mount", node))
            .map(|path| path.trim_end_matches('/').to_owned())
            .unwrap_or_default(),
        params: table.map(|table| params::build(check, table)).unwrap_or_default(),
        ..base
    };
    binding::read(check, Section::Application, table, &mut application);
    Some(application)
}

/// Remedy for an address that is missing or invalid.
const EXAMPLE: &str = "write its address: \"unix:/run/app.sock\" or \"127.0.0.1:9000\"";

/// Reads the addresses of an application: at least one, and none twice; `None` after an error.
fn addresses(check: &mut Check<'_>, key: &str, node: &Node) -> Option<Vec<Host>> {
    let items = typed::elements(node);
    if items.is_empty() {
        let message = format!("`{key}` names no address");
        check.error(Code::BadValue, node.span, message, EXAMPLE);
        return None;
    }
    if items.len() > MAX_ADDRESSES {
        let message = format!("`{key}` names more than {MAX_ADDRESSES} addresses");
        let help = "name a load balancer in front of them";
        check.error(Code::BadValue, node.span, message, help);
        return None;
    }
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        let host = address::build(check, key, item, EXAMPLE)?;
        if all.contains(&host) {
            check.error(Code::Conflict, item.span, format!("{host} is named twice"), "remove it");
            return None;
        }
        all.push(host);
    }
    Some(all)
}
