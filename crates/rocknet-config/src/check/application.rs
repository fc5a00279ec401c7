//! `fastcgi`, `scgi`, `uwsgi`: which application answers, and how it is spoken to.

use crate::binding::{self, Section};
use crate::context::Check;
use crate::file::{Entry, Node, Table, Value};
use crate::finding::Code;
use crate::model::{Application, Host, Pattern, Protocol, Settings};
use crate::value::{address, params, path, typed};

/// Most addresses of one place: who has more has a balancer of its own before them.
const MAX_ADDRESSES: usize = 256;

/// Reads the application that a site or route names over the one it inherits. Returns the keys whose settings no longer
/// apply.
pub(super) fn build(check: &mut Check<'_>, table: &Table, settings: &mut Settings) -> Vec<&'static str> {
    let mut written: Vec<(Protocol, &Entry)> = Protocol::ALL
        .iter()
        .filter_map(|protocol| Some((*protocol, table.entries.get(protocol.key())?)))
        .collect();
    // An application beside one that is turned off answers.
    written.sort_by_key(|(_, entry)| is_off(entry));
    let inherited = || {
        let keys = Protocol::ALL.iter().map(|protocol| protocol.key());
        keys.filter(|key| !table.entries.contains_key(*key))
    };
    let &[(protocol, entry), ref others @ ..] = &written[..] else {
        // Something else is named to answer.
        let names = |key: &str| table.entries.get(key).is_some_and(|entry| !is_off(entry));
        if !["root", "proxy", "controller"].into_iter().any(names) {
            return Vec::new();
        }
        settings.application = None;
        return inherited().collect();
    };
    let rivals = ["proxy", "controller"].iter().filter_map(|key| table.entries.get(*key));
    let mut rivals = others.iter().map(|(_, entry)| *entry).chain(rivals);
    if let Some(other) = rivals.find(|other| !is_off(other) && !is_off(entry)) {
        let message = "only one can answer here".to_owned();
        check.conflict(
            other.key,
            ("another is named here", entry.key),
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

fn is_off(entry: &Entry) -> bool {
    matches!(entry.node.value, Value::Boolean(false))
}

/// The name of an application that a route has brought in, and that does not say its own: what the pattern begins with.
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
        Pattern::Glob(_) => "",
    };
    path.clone_into(&mut application.mount);
}

/// `None`: nobody, or what is written cannot be meant.
fn application(check: &mut Check<'_>, protocol: Protocol, node: &Node) -> Option<Application> {
    let key = protocol.key();
    let (places, table) = match &node.value {
        Value::Boolean(true) => {
            let message = format!("`{key} = true` does not say where the application listens");
            check.error(Code::BadValue, node.span, message, EXAMPLE);
            return None;
        }
        Value::Text(_) | Value::List(_) => (node, None),
        Value::Table(table) => match table.node("to") {
            Some(places) => (places, Some(table)),
            None => {
                let help = "write to = \"unix:/run/app.sock\" in it";
                let message = format!("`{key}` does not say where the application listens");
                check.error(Code::Missing, node.span, message, help);
                return None;
            }
        },
        _ => return None,
    };
    let base = Application::at(protocol, addresses(check, key, places)?);
    if let Some(entry) = table.and_then(|table| table.entries.get("keep"))
        && protocol != Protocol::FastCgi
    {
        let message = format!("{protocol} has a connection for each request: there is nothing to keep");
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

const EXAMPLE: &str = "write where it listens: \"unix:/run/app.sock\" or \"127.0.0.1:9000\"";

fn addresses(check: &mut Check<'_>, key: &str, node: &Node) -> Option<Vec<Host>> {
    let items = typed::elements(node);
    if items.is_empty() {
        let message = format!("`{key}` names no application");
        check.error(Code::BadValue, node.span, message, EXAMPLE);
        return None;
    }
    if items.len() > MAX_ADDRESSES {
        let message = format!("more than {MAX_ADDRESSES} applications for one place");
        let help = "name a balancer that stands before them";
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
