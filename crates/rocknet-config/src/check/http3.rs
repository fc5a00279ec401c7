//! Checks `http3`: a switch, or a table of settings, which switches HTTP/3 on.

use crate::binding::{self, Section};
use crate::check::listen;
use crate::context::Check;
use crate::file::{Node, Value};
use crate::finding::Code;
use crate::model::{Http3, Listen};
use crate::value::typed;

/// Reads `http3` of the server or of a site. Keys that are not written keep their `inherited` value.
pub(super) fn build(check: &mut Check<'_>, node: Option<&Node>, inherited: &Http3) -> Http3 {
    let mut http3 = inherited.clone();
    let Some(node) = node else { return http3 };
    match &node.value {
        Value::Boolean(enabled) => http3.enabled = *enabled,
        Value::Table(table) => {
            http3.enabled = true;
            binding::read(check, Section::Http3, Some(table), &mut http3);
            if let Some(except) = table.node("except") {
                let elements = typed::elements(except).iter();
                http3.except = elements
                    .filter_map(|element| listen::without_scheme(check, element))
                    .collect();
            }
        }
        // Module `check::keys` has reported any other value.
        _ => {}
    }
    http3
}

/// Reads `http3` of a site. `secure`: the TLS listeners of the site; `None` if they are unknown because `tls` is
/// invalid.
pub(super) fn of_site(
    check: &mut Check<'_>,
    node: Option<&Node>,
    inherited: &Http3,
    secure: Option<&[Listen]>,
) -> Http3 {
    let built = build(check, node, inherited);
    let (Some(node), Some(secure)) = (node, secure) else {
        return built;
    };
    if built.enabled && secure.is_empty() {
        let message = "`http3` has no effect: the site has no listener with TLS";
        let help = "remove it, or write tls = \"auto\" beside it";
        check.warning(Code::Useless, node.span, message, help);
    } else {
        warn_of_unused(check, node, &built.except, secure);
    }
    built
}

/// Reports exceptions in `[server]` that stand for no TLS listener of any site. `secure`: the TLS listeners of all
/// sites.
pub(super) fn check_server(check: &mut Check<'_>, node: Option<&Node>, http3: &Http3, secure: &[Listen]) {
    if let Some(node) = node {
        warn_of_unused(check, node, &http3.except, secure);
    }
}

/// Reports elements of `except`, the listeners without HTTP/3, that stand for none of the listeners in `secure`.
/// `node`: the value of `http3`.
fn warn_of_unused(check: &mut Check<'_>, node: &Node, except: &[Listen], secure: &[Listen]) {
    let Some(written) = node.as_table().and_then(|table| table.node("except")) else {
        return;
    };
    let elements = typed::elements(written);
    // If an element is invalid, `except` lacks its listener, and an error has been reported.
    if elements.len() != except.len() {
        return;
    }
    for (listen, element) in except.iter().zip(elements) {
        if !secure.iter().any(|other| listen.includes(other)) {
            let message = "the exception from `http3` has no effect: there is no such listener with TLS";
            let help = "write a port or an address as in `listen`, without https://";
            check.warning(Code::Useless, element.span, message, help);
        }
    }
}
