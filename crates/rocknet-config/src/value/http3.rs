//! Parses `http3`: a switch, or a table of settings, which switches HTTP/3 on.

use crate::binding::{self, Section};
use crate::context::Check;
use crate::file::{Node, Value};
use crate::model::Http3;

/// Reads `http3` of the server or of a site. Keys that are not written keep their `inherited` value.
pub(crate) fn build(check: &mut Check<'_>, node: Option<&Node>, inherited: Http3) -> Http3 {
    let Some(node) = node else { return inherited };
    let mut http3 = inherited;
    match &node.value {
        Value::Boolean(enabled) => http3.enabled = *enabled,
        Value::Table(table) => {
            http3.enabled = true;
            binding::read(check, Section::Http3, Some(table), &mut http3);
        }
        // A value of any other type has already been reported.
        _ => {}
    }
    http3
}
