//! Parses `params` and `env`, the variables that are set for applications and programs.

use std::collections::BTreeMap;

use crate::context::Check;
use crate::file::Table;
use crate::finding::Code;
use crate::message::short;

/// Variables that only the server sets, because they frame a message or name the protocol.
const RESERVED_VARIABLES: &[&str] = &["CONTENT_LENGTH", "SCGI", "GATEWAY_INTERFACE"];

/// Maximum lengths of a name and a value, in bytes. They are bounded because a variable is sent with every request.
const MAX_NAME: usize = 128;
const MAX_VALUE: usize = 4096;

/// Reads the variables of `params`; an empty value removes a variable.
pub(crate) fn build(check: &mut Check<'_>, table: &Table) -> BTreeMap<String, String> {
    variables(check, table, "params")
}

/// Reads the variables in the table that is the value of `key`.
pub(crate) fn variables(check: &mut Check<'_>, table: &Table, key: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (name, entry) in table.table(key).map(Table::in_order).unwrap_or_default() {
        let Some(written) = entry.node.written() else { continue };
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let (message, help) = if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_name_byte) {
            let message = format!("\"{}\" is not a valid variable name", short(name));
            (message, "names contain letters, digits and `_`: SCRIPT_FILENAME")
        } else if RESERVED_VARIABLES.contains(&name) {
            (format!("`{name}` is set by the server"), "remove it")
        } else if written.value.len() > MAX_VALUE || written.value.contains(|c: char| c.is_control()) {
            let message = format!("the value of `{name}` is too long or has a control character");
            check.bad_text(
                written,
                entry.node.span,
                message,
                "write one line of at most 4096 bytes",
            );
            continue;
        } else {
            all.insert(name.to_owned(), written.value.clone());
            continue;
        };
        check.error(Code::BadValue, entry.key, message, help);
    }
    all
}
