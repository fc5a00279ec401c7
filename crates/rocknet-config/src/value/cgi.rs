//! Parses `cgi`: the folder of programs and their limits.

use crate::binding::{self, Section};
use crate::context::Check;
use crate::file::{Node, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::Cgi;
use crate::value::{params, path, typed};

/// Reads `cgi`; `None` if CGI is off or the value is invalid. `has_root`: true if the site or route has a root.
pub(crate) fn build(check: &mut Check<'_>, node: &Node, has_root: bool) -> Option<Cgi> {
    let (folder_node, table) = match &node.value {
        Value::Boolean(true) => {
            let message = "`cgi = true` names no folder";
            check.error(Code::BadValue, node.span, message, EXAMPLE);
            return None;
        }
        Value::Text(_) => (node, None),
        Value::Table(table) => match table.node("folder") {
            Some(folder_node) => (folder_node, Some(table)),
            None => {
                let help = "write folder = \"/cgi-bin\" in it";
                let message = "`cgi` has no `folder`";
                check.error(Code::Missing, node.span, message, help);
                return None;
            }
        },
        _ => return None,
    };
    if !has_root {
        let help = "write root = \"/var/www\" beside it";
        check.error(
            Code::Missing,
            node.span,
            "`cgi` needs a `root` that contains the programs",
            help,
        );
        return None;
    }
    let base = Cgi::at(folder(check, folder_node)?);
    let mut cgi = Cgi {
        params: table.map(|table| params::build(check, table)).unwrap_or_default(),
        ..base
    };
    binding::read(check, Section::Cgi, table, &mut cgi);
    Some(cgi)
}

/// Reads the path of the folder, which may end in `/` or `/*`; `None` after an error.
fn folder(check: &mut Check<'_>, node: &Node) -> Option<String> {
    let written = node.written()?;
    let text = written.value.strip_suffix("/*").unwrap_or(&written.value);
    let text = text.strip_suffix('/').unwrap_or(text);
    if text.is_empty() {
        let message = "`cgi` cannot be the whole site, because all its files would be run";
        check.error(Code::BadValue, node.span, message, EXAMPLE);
        return None;
    }
    if let Some((message, help)) = path::site_path_error(text) {
        check.bad_text(written, node.span, format!("`cgi`: {message}"), help);
        return None;
    }
    if text.contains('*') {
        let message = format!("`cgi` cannot be \"{}\"", short(typed::as_written(node)));
        check.bad_text(written, node.span, message, EXAMPLE.to_owned());
        return None;
    }
    Some(text.to_owned())
}

/// Help for a `cgi` that names no valid folder.
const EXAMPLE: &str = "write the path of a folder: cgi = \"/cgi-bin\"";
