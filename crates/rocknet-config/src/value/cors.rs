//! Parses `cors`: permission for pages of other origins to read responses.

use crate::binding::{self, Section, WrittenKey};
use crate::context::Check;
use crate::file::{Node, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{Cors, OriginPattern, Origins};
use crate::value::{field, typed};

/// Maximum number of origins, methods or fields in a list. Each request with an origin is compared with the list.
const MAX_LIST: usize = 100;

/// Reads `cors`; `None` if it is off or invalid.
pub(crate) fn build(check: &mut Check<'_>, node: &Node) -> Option<Cors> {
    let mut cors = Cors::default();
    match &node.value {
        Value::Boolean(false) | Value::Broken => return None,
        Value::Boolean(true) => {}
        Value::Table(table) => {
            binding::read(check, Section::Cors, Some(table), &mut cors);
            if cors.credentials && cors.origins == Origins::All {
                let message = "`credentials` permits every page to read what a visitor who is logged in can see";
                let help = "list the origins: cors = { origins = [\"https://app.example.com\"], credentials = true }";
                let span = table.node("credentials").map_or(node.span, |node| node.span);
                check.error(Code::Dangerous, span, message, help);
            }
        }
        _ => cors.origins = self::list(check, node)?,
    }
    Some(cors)
}

/// Reads `origins`.
pub(crate) fn origins(check: &mut Check<'_>, written: &WrittenKey<'_>, cors: &mut Cors) {
    // With an invalid list, no origin is permitted.
    cors.origins = list(check, &written.entry.node).unwrap_or_else(|| Origins::Listed(Vec::new()));
}

/// Reads a list of origins; `None` after an error.
fn list(check: &mut Check<'_>, node: &Node) -> Option<Origins> {
    let texts: Vec<_> = typed::texts(node).collect();
    if texts.len() == 1 && texts[0].0.value.as_str() == "*" {
        return Some(Origins::All);
    }
    if texts.is_empty() || texts.len() > MAX_LIST {
        let message = format!("a list of origins has from 1 to {MAX_LIST} origins");
        let help = "write cors = false to permit none, and cors = true to permit all";
        check.error(Code::BadValue, node.span, message, help);
        return None;
    }
    let mut listed = Vec::with_capacity(texts.len());
    let mut is_valid = true;
    for (text, span) in texts {
        match OriginPattern::parse(text.value.as_str()) {
            Ok(origin) => listed.push(origin),
            Err(reason) => {
                is_valid = false;
                let message = format!("the origin \"{}\" {reason}", short(text.value.as_str()));
                check.bad_text(text, span, message, help(text.value.as_str()));
            }
        }
    }
    is_valid.then_some(Origins::Listed(listed))
}

/// Returns the advice for a text that is not an origin.
fn help(text: &str) -> &'static str {
    match text {
        "*" => "write \"*\" alone, or the origins without it",
        "null" => "local files and sandboxed frames of any website have this origin, so a list cannot contain it",
        _ => "write scheme, host and port: \"https://app.example.com\", \"http://localhost:5173\"",
    }
}

/// Reads `methods`.
pub(crate) fn methods(check: &mut Check<'_>, written: &WrittenKey<'_>, cors: &mut Cors) {
    // Methods are case-sensitive (RFC 9110 §9.1), and those of the standards are in upper case.
    cors.methods = tokens(
        check,
        written,
        "method",
        "write methods in upper case: [\"PUT\", \"DELETE\"]",
        |text| field::is_token(text) && !text.bytes().any(|byte| byte.is_ascii_lowercase()),
    );
}

/// Reads `headers`.
pub(crate) fn headers(check: &mut Check<'_>, written: &WrittenKey<'_>, cors: &mut Cors) {
    cors.headers = fields(check, written);
}

/// Reads `expose`.
pub(crate) fn expose(check: &mut Check<'_>, written: &WrittenKey<'_>, cors: &mut Cors) {
    cors.expose = fields(check, written);
}

fn fields(check: &mut Check<'_>, written: &WrittenKey<'_>) -> Vec<String> {
    let help = "write names of header fields, such as \"X-Total-Count\"";
    tokens(check, written, "field name", help, field::is_token)
}

/// Reads a list of texts. Invalid ones are reported and left out.
fn tokens(
    check: &mut Check<'_>,
    written: &WrittenKey<'_>,
    what: &str,
    help: &str,
    is_valid: impl Fn(&str) -> bool,
) -> Vec<String> {
    let node = &written.entry.node;
    let mut tokens = Vec::new();
    for (text, span) in typed::texts(node) {
        let value = text.value.as_str();
        if is_valid(value) {
            tokens.push(value.to_owned());
        } else {
            check.bad_text(text, span, format!("\"{}\" is not a {what}", short(value)), help);
        }
    }
    if tokens.len() > MAX_LIST {
        let message = format!("a list has at most {MAX_LIST} entries");
        check.error(Code::BadValue, node.span, message, "shorten it");
        tokens.truncate(MAX_LIST);
    }
    tokens
}
