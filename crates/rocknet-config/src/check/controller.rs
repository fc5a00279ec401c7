//! `controller`: which function of which library answers.

use crate::check::words::short;
use crate::check::{Check, path, value};
use crate::file::{Node, Table, Value};
use crate::finding::Code;
use crate::model::{Controller, RunOn, Settings};

/// Longest name of a controller: a name of C may be longer, one that somebody writes is not.
const MAX_NAME: usize = 128;

pub(super) fn build(check: &mut Check<'_>, table: &Table, settings: &mut Settings) {
    place(check, table, settings);
    let has = |key: &str| table.node(key).is_some();
    match table.node("controller") {
        Some(node) => settings.controller = controller(check, node),
        // Somebody else is named to answer inside a site that is answered by a controller.
        None if has("root") || has("proxy") => settings.controller = None,
        None => return,
    }
    if settings.controller.is_none() {
        settings.places.remove("controller");
    } else if !has("proxy") {
        settings.proxy = None;
        settings.places.remove("proxy");
    }
}

/// Where it runs.
fn place(check: &mut Check<'_>, table: &Table, settings: &mut Settings) {
    if let Some(isolate) = value::boolean(Some(table), "isolate") {
        settings.isolate = isolate;
    }
    settings.run_on = match value::text(Some(table), "run_on") {
        Some("worker") => RunOn::Worker,
        Some("network") => RunOn::Network,
        _ => return,
    };
    if let (true, Some(node)) = (settings.isolate, table.node("run_on")) {
        let message = "`run_on` says nothing where `isolate = true`: the controller runs in a process of its own";
        check.warning(Code::Useless, node.span, message, "remove one of the two");
    }
}

/// `None`: none, or what is written cannot be meant.
fn controller(check: &mut Check<'_>, node: &Node) -> Option<Controller> {
    let written = match &node.value {
        Value::Boolean(true) => {
            let message = "`controller = true` does not say which";
            check.error(Code::BadValue, node.span, message, EXAMPLE);
            return None;
        }
        Value::Text(written) => written,
        _ => return None,
    };
    let Some((library, name)) = written.value.rsplit_once(':') else {
        let message = format!("`controller` does not say which of \"{}\"", short(&written.value));
        check.bad_text(written, node.span, message, EXAMPLE);
        return None;
    };
    let is_name = |text: &str| !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(|b| b.is_ascii_graphic());
    if !is_name(name) || name.contains('/') {
        let message = format!("`controller`: \"{}\" is no name of a controller", short(name));
        check.bad_text(written, node.span, message, EXAMPLE);
        return None;
    }
    let library = path::file_at(check, "controller", library, node.span)?;
    let name = name.to_owned();
    Some(Controller { library, name })
}

const EXAMPLE: &str = "write the library and the name in it: \"controllers/hello.so:hello\"";
