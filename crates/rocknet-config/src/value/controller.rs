//! `controller`: the library and the name of a controller in it.

use crate::context::Check;
use crate::file::{Node, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::Controller;
use crate::value::path;

/// Longest name of a controller: names in C may be longer, but no sensible one is.
const MAX_NAME: usize = 128;

/// Reads `controller`; `None` if it is off or invalid.
pub(crate) fn build(check: &mut Check<'_>, node: &Node) -> Option<Controller> {
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
