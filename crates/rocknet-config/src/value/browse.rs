//! Parses `browse`: the listings of folders, and their zip archives.

use crate::binding::{self, Section};
use crate::context::Check;
use crate::file::{Node, Value};
use crate::model::{Browse, ZipLimits};

/// Reads `browse`; `None` if it is off or invalid. A table turns listings on.
pub(crate) fn build(check: &mut Check<'_>, node: &Node) -> Option<Browse> {
    match &node.value {
        Value::Boolean(true) => Some(Browse::default()),
        Value::Table(table) => {
            let mut browse = Browse {
                zip: table.node("zip").and_then(|zip| self::zip(check, zip)),
                ..Browse::default()
            };
            binding::read(check, Section::Browse, Some(table), &mut browse);
            Some(browse)
        }
        _ => None,
    }
}

/// Reads `zip`; `None` if it is off or invalid. A table turns archives on.
fn zip(check: &mut Check<'_>, node: &Node) -> Option<ZipLimits> {
    match &node.value {
        Value::Boolean(true) => Some(ZipLimits::default()),
        Value::Table(table) => {
            let mut zip = ZipLimits::default();
            binding::read(check, Section::Zip, Some(table), &mut zip);
            Some(zip)
        }
        _ => None,
    }
}
