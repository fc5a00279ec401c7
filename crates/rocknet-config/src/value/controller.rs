//! Parses `controller`: a shared library and the name of a function in it.

use crate::context::Check;
use crate::file::{Node, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::Controller;
use crate::value::path;

/// Maximum length of the name of a controller, in bytes. It is longer than any name in use.
const MAX_NAME: usize = 128;

/// Reads `controller`; `None` if it is off or invalid.
pub(crate) fn build(check: &mut Check<'_>, node: &Node) -> Option<Controller> {
    let written = match &node.value {
        Value::Boolean(true) => {
            let message = "`controller = true` names no controller";
            check.error(Code::BadValue, node.span, message, EXAMPLE);
            return None;
        }
        Value::Text(written) => written,
        // Off, or of a wrong type, which the check of the keys has reported.
        _ => return None,
    };
    let Some((library, name)) = written.value.rsplit_once(':') else {
        let message = format!(
            "`controller` has no name after the library \"{}\"",
            short(&written.value)
        );
        check.bad_text(written, node.span, message, EXAMPLE);
        return None;
    };
    let is_name = |text: &str| !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(|b| b.is_ascii_graphic());
    if !is_name(name) || name.contains('/') {
        let message = format!("`controller`: \"{}\" is not a valid name", short(name));
        check.bad_text(written, node.span, message, EXAMPLE);
        return None;
    }
    let library = path::file_at(check, "controller", node, library)?;
    let name = name.to_owned();
    Some(Controller { library, name })
}

/// Help for a `controller` that names no valid function.
const EXAMPLE: &str = "write the library, a colon and the name: \"controllers/hello.so:hello\"";
