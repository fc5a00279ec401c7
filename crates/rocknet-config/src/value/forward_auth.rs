//! Parses `forward` of `auth`: the authorization service that decides about requests.

use std::time::Duration;

use crate::captures::CaptureNames;
use crate::context::Check;
use crate::file::{Node, Table, Text, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{ForwardAuth, Pattern, SignIn, Upstream};
use crate::units;
use crate::value::proxy::upstreams;
use crate::value::{field, pattern, typed};

/// Maximum number of fields that are copied from a response of the authorization service. Each field of the response is
/// compared with all of them.
const MAX_HEADERS: usize = 64;

/// Reads the authorization service of an `auth` with the key `forward`; `None` after an error. `node`: value of
/// `forward`.
pub(crate) fn build(check: &mut Check<'_>, table: &Table, node: &Node) -> Option<ForwardAuth> {
    for other in ["users", "file", "realm"] {
        if let Some(entry) = table.entries.get(other) {
            let help = "remove one of them: the authorization service checks passwords itself";
            let message = format!("`forward` cannot be combined with `{other}`");
            check.error(Code::Conflict, entry.key, message, help);
        }
    }
    let (to, target) = service(check, node)?;
    let mut forward = ForwardAuth::at(to, target);
    if let Some(node) = table.node("headers") {
        forward.headers = headers(check, node);
    }
    if let Some(node) = table.node("user_field")
        && let Some(written) = node.written()
    {
        match is_copied(&written.value) {
            true => forward.user_field = written.value.clone(),
            false => {
                let message = format!("\"{}\" cannot be the field with the user", short(&written.value));
                check.bad_text(written, node.span, message, HEADERS_HELP);
            }
        }
    }
    if let Some(node) = table.node("sign_in")
        && let Some(written) = node.written()
    {
        forward.sign_in = sign_in(check, written, node);
    }
    let timeout = table.node("timeout").and_then(Node::as_text);
    if let Some(timeout) = timeout.and_then(|text| units::duration(text).ok()) {
        // Less than 1 ms was reported as out of range.
        forward.timeout = timeout.max(Duration::from_millis(1));
    }
    Some(forward)
}

/// Reports a key of `forward` in an `auth` without `forward`.
pub(crate) fn report_unused(check: &mut Check<'_>, table: &Table) {
    for name in ["headers", "user_field", "sign_in", "timeout"] {
        if let Some(entry) = table.entries.get(name) {
            let message = format!("`{name}` has no effect without `forward`");
            let help = "add the address of the authorization service: forward = \"http://127.0.0.1:9091/verify\"";
            check.error(Code::Missing, entry.key, message, help);
        }
    }
}

/// Reads the URL of the authorization service. Returns the server and the target of queries: `/verify` for
/// `http://127.0.0.1:9091/verify` and for `unix:/run/auth.sock:/verify`.
fn service(check: &mut Check<'_>, node: &Node) -> Option<(Upstream, String)> {
    let Value::Text(written) = &node.value else { return None };
    let text = written.value.as_str();
    let target_start = match text.strip_prefix("unix:") {
        Some(rest) => rest.find(':').map(|at| "unix:".len() + at),
        None => text.find("://").and_then(|scheme| {
            let host = scheme + "://".len();
            text[host..].find(['/', '?', '#']).map(|at| host + at)
        }),
    };
    let (server, target) = text.split_at(target_start.unwrap_or(text.len()));
    let target = match target.strip_prefix(':').unwrap_or(target) {
        "" => "/".to_owned(),
        target if target.starts_with('?') => format!("/{target}"),
        target => target.to_owned(),
    };
    let is_target = target.starts_with('/') && target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if !is_target {
        let message = format!("`forward`: \"{}\" is not the path of a URL", short(&target));
        let help = "write a URL without fragment: forward = \"http://127.0.0.1:9091/verify\"";
        check.bad_text(written, node.span, message, help);
        return None;
    }
    // `auth` has no key `http2`, so HTTP/2 is used only for the scheme `h2c://`.
    let http2 = false;
    Some((
        upstreams::upstream_of_text(check, server, written, node, http2)?,
        target,
    ))
}

/// Reads `sign_in`; `None` after an error.
fn sign_in(check: &mut Check<'_>, written: &Text, node: &Node) -> Option<SignIn> {
    let text = written.value.as_str();
    if text == SignIn::LOCATION {
        return Some(SignIn::Location);
    }
    // The server makes a redirect from the pattern `/*` to this target, so the target can contain `{*}`.
    let names = CaptureNames::of_pattern(&Pattern::Prefix("/".to_owned()));
    let error = pattern::target_form(&names, text).err().or_else(|| {
        let message = format!("\"{}\" has a fragment", short(text));
        text.contains('#')
            .then(|| (message, "remove the part from `#`".to_owned()))
    });
    match error {
        None => Some(SignIn::Target(text.to_owned())),
        Some((message, help)) => {
            check.bad_text(written, node.span, format!("`sign_in`: {message}"), help);
            None
        }
    }
}

const HEADERS_HELP: &str = "write names of header fields of the authorization service's responses: \"Remote-User\"";

/// Reads `headers`. Invalid names are reported and left out.
fn headers(check: &mut Check<'_>, node: &Node) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (text, span) in typed::texts(node) {
        let name = text.value.as_str();
        if !is_copied(name) {
            let message = format!("`headers`: the field \"{}\" cannot be copied to requests", short(name));
            check.bad_text(text, span, message, HEADERS_HELP);
        } else if !names.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            names.push(name.to_owned());
        }
    }
    if names.len() > MAX_HEADERS {
        let message = format!("`headers` has more than {MAX_HEADERS} names");
        check.error(Code::BadValue, node.span, message, "shorten it");
        names.truncate(MAX_HEADERS);
    }
    names
}

/// Returns true if a field can be copied from a response to a request.
fn is_copied(name: &str) -> bool {
    field::is_token(name) && !field::is_reserved(name) && !name.eq_ignore_ascii_case("Host")
}
