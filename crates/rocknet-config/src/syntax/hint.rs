//! Words for TOML syntax errors: what a person most likely meant by a line that is not TOML, and how to write it.

use toml_parser::{Expected, ParseError};

use crate::finding::{Code, Finding, Related, Severity};
use crate::source::{Sources, Span};
use crate::syntax::builder::BrokenValue;

/// Parser's description, what is wrong, what to write. The first row whose description fits is used.
const MESSAGES: &[(&str, &str, &str)] = &[
    (
        "string values must be quoted",
        "a string needs quotes around it",
        "write it as \"…\"",
    ),
    ("key with no value", "a key without a value", "write `key = value`"),
    ("missing value for key", "a key without a value", "write `key = value`"),
    ("missing value", "there is no value after `=`", NO_VALUE),
    (
        "invalid boolean",
        "this is neither true nor false",
        "write true or false, or put a string into quotes",
    ),
    ("invalid value", "there is no value after `=`", NO_VALUE),
    ("extra `=`", "one `=` too many", "write `key = value`"),
    ("extra assignment", "one `=` too many", "write `key = value`"),
    (
        "unclosed array table",
        "the `]]` that ends the header is missing",
        "close it on the same line",
    ),
    (
        "unclosed table",
        "the `]` that ends the header is missing",
        "write `[name]` on a line of its own",
    ),
    (
        "missing table open",
        "a `]` with no `[` before it",
        "write `[name]` on a line of its own",
    ),
    ("unclosed array", "the list is not closed", "end it with `]`"),
    (
        "missing array opening",
        "a `]` with no `[` before it",
        "begin the list with `[`",
    ),
    ("unclosed inline table", "the table is not closed", "end it with `}`"),
    (
        "missing inline table opening",
        "a `}` with no `{` before it",
        "begin the table with `{`, as in { cert = \"…\" }",
    ),
    (
        "missing comma",
        "a comma is missing between two elements",
        "put `,` between them",
    ),
    ("extra comma", "one comma too many", "remove it"),
    (
        "missing assignment",
        "a key without `=` in a table",
        "write { key = value }",
    ),
    (
        "missing key",
        "a value without a key in a table",
        "write { key = value }",
    ),
    (
        "invalid table",
        "a header without a name",
        "write `[server]` or `[site.\"example.com\"]`",
    ),
    (
        "invalid unquoted key",
        "this name needs quotes",
        "names of letters, digits, `-` and `_` may stand bare; any other goes into \"…\"",
    ),
    (
        "unquoted keys cannot be empty",
        "a key is missing here",
        "write `key = value`",
    ),
    (
        "too few unicode",
        "`\\u` and `\\U` take 4 and 8 hexadecimal digits",
        BACKSLASH,
    ),
    (
        "carriage return",
        "a carriage return without a newline",
        "save the file with Unix line ends",
    ),
    (
        "invalid comment character",
        "a control character in a comment",
        "remove it",
    ),
    (
        "unexpected leading zero",
        "a number may not begin with 0",
        "remove the 0, or write it as a string in quotes",
    ),
    (
        "integers with a radix",
        "a number with a prefix takes no sign",
        "write it in decimal",
    ),
    (
        "radix must be lowercase",
        "the prefix of a number is written small",
        "write 0x, 0o or 0b",
    ),
    (
        "`_` may only",
        "`_` may only stand between digits",
        "write 1_000 or 1000",
    ),
    (
        "number out of range",
        "the number is too large",
        "numbers go to 9223372036854775807",
    ),
    (
        "max recursion depth",
        "lists or tables nested too deep",
        "no key of RockNet needs this",
    ),
    (
        "unexpected content",
        "something follows that does not belong on this line",
        "one `key = value` on each line",
    ),
    (
        "unexpected key or value",
        "something follows that does not belong here",
        "one `key = value` on each line",
    ),
];

const NO_VALUE: &str = "write a string in quotes, a number, true, false or a [list]";

const BACKSLASH: &str = "write the text in '…' (single quotes), where `\\` stands for itself, or double it: `\\\\`";

/// The finding for one error of the parser.
pub(crate) fn finding(sources: &Sources, span: Span, error: &ParseError) -> Finding {
    let description = error.description();
    let mut location = sources.locate(span);
    let (message, help) = if let Some((token, message, help)) = bare_text(sources, span, error) {
        location = sources.locate(token);
        (message, help)
    } else if let Some((backslash, message, help)) = windows_path(sources, span, error) {
        location = sources.locate(backslash);
        (message, help)
    } else if let Some(known) = habit(sources, span, error) {
        known
    } else if let Some((_, message, help)) = MESSAGES.iter().find(|(start, _, _)| description.contains(start)) {
        ((*message).to_owned(), (*help).to_owned())
    } else {
        (format!("not TOML: {description}"), expectation(error))
    };
    Finding {
        severity: Severity::Error,
        code: Code::Syntax,
        message,
        help: Some(help).filter(|h| !h.is_empty()),
        location: Some(location),
        related: Vec::new(),
    }
}

/// The finding for a list or table that is misread from some later line on.
pub(crate) fn broken_value(sources: &Sources, broken: &BrokenValue) -> Finding {
    let (noun, end) = if broken.is_list { ("list", "]") } else { ("table", "}") };
    Finding {
        severity: Severity::Error,
        code: Code::Syntax,
        message: format!("the {noun} that begins here is not closed, or misses a comma"),
        help: Some(format!("end it with `{end}`, and put `,` between its elements")),
        location: Some(sources.locate(broken.open)),
        related: vec![Related {
            message: "goes wrong here".into(),
            location: sources.locate(broken.error),
        }],
    }
}

/// The part of a line around a place that would be one value: up to a space, a comma or a bracket on each side.
fn token(sources: &Sources, span: Span) -> Option<Span> {
    let text = sources.text(span.file);
    let at = span.start as usize;
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}' | '=' | '#');
    let start = text.get(..at)?.rfind(ends).map_or(0, |end| end + 1);
    let length = text.get(start..)?.find(ends).unwrap_or(text.len() - start);
    Some(Span::new(span.file, start, start + length))
}

/// Text without quotes that TOML reads as a broken number, because it begins with a dot or a digit: `./site`,
/// `127.0.0.1:80`.
fn bare_text(sources: &Sources, span: Span, error: &ParseError) -> Option<(Span, String, String)> {
    let misread = [
        "invalid mantissa",
        "invalid float",
        "invalid integer",
        "invalid decimal",
    ];
    if !misread.iter().any(|start| error.description().starts_with(start)) {
        return None;
    }
    let token = token(sources, span)?;
    let text = sources.slice(token);
    let is_text = text.contains(['/', ':', '~', '@']) || text.matches('.').count() > 1;
    let quotable = !text.contains(['"', '\'', '\\']);
    (is_text && quotable).then(|| {
        let message = "a string needs quotes around it".to_owned();
        (token, message, format!("write \"{text}\""))
    })
}

/// A path of Windows in double quotes, where each backslash begins an escape; the backslash that fails is pointed at.
fn windows_path(sources: &Sources, span: Span, error: &ParseError) -> Option<(Span, String, String)> {
    let description = error.description();
    if !description.contains("too few unicode") && !description.contains("missing escaped value") {
        return None;
    }
    let text = sources.text(span.file);
    let before = text.get(..span.start as usize)?;
    // An escape has at most eight digits after its letter, so the backslash is near.
    let backslash = before.rfind('\\')?;
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let escape = Span::new(span.file, backslash, backslash + 1);
    if backslash < line {
        return None;
    }
    let letter = text
        .get(backslash + 1..)?
        .chars()
        .next()
        .filter(|c| !c.is_whitespace())?;
    let message = format!("in \"…\" a `\\` begins an escape, and `\\{letter}` is none");
    let quoted = text.get(line..backslash)?.rfind('"').map(|at| line + at + 1);
    let inner = quoted.and_then(|start| text.get(start..)?.split(['"', '\n']).next());
    let help = match inner.filter(|inner| !inner.contains('\'')) {
        Some(inner) => format!("write '{inner}': in single quotes a `\\` stands for itself"),
        None => BACKSLASH.to_owned(),
    };
    Some((escape, message, help))
}

/// Habits from other languages, told by the look of the line.
fn habit(sources: &Sources, span: Span, error: &ParseError) -> Option<(String, String)> {
    let text = sources.text(span.file);
    let start = text.get(..span.start as usize)?.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(start..)?.split('\n').next()?.trim();
    let hint = |message: &str, help: &str| Some((message.to_owned(), help.to_owned()));
    if line.contains(['“', '”', '„', '‘', '’']) {
        return hint("typographic quotes are no quotes to TOML", "write straight ones: \"…\"");
    }
    if line.ends_with(';') {
        return hint(
            "a semicolon does not end a line here",
            "write `key = \"value\"` and nothing after it",
        );
    }
    if line.ends_with('{') && !line.contains('=') {
        let help = "write a header instead, `[site.\"example.com\"]`; it holds until the next header";
        return hint("TOML has no blocks in braces", help);
    }
    if line == "}" {
        return hint(
            "a `}` with no `{` before it",
            "remove it: a table ends where the next header begins",
        );
    }
    if line.starts_with("//") || line.starts_with("/*") || line.starts_with("--") {
        return hint("this does not begin a comment", "begin it with `#`");
    }
    if !line.contains('=')
        && !line.starts_with('[')
        && let Some((key, value)) = line.split_once(':')
    {
        let key = key.trim().trim_matches('"');
        if !key.is_empty() && !key.contains(' ') {
            let help = match value.trim() {
                "" => format!("write `[{key}]`, and its keys below it"),
                value => format!("write {key} = {value}"),
            };
            return Some(("TOML puts `=` between key and value".to_owned(), help));
        }
    }
    // Its expectations name quotes among the escapes, which would read as a missing end.
    if error.description().contains("missing escaped value") {
        return hint("`\\` begins an escape here, and none follows", BACKSLASH);
    }
    let wants = |quote: &'static str| error.expected().is_some_and(|e| e.contains(&Expected::Literal(quote)));
    if wants("\"") || wants("'") || wants("\"\"\"") || wants("'''") {
        return hint(
            "the string has no closing quote",
            "end it with the same quote on the same line",
        );
    }
    if error.description().contains("string values must be quoted") {
        let value = sources.slice(span).trim();
        if value.is_empty() {
            return hint("there is no value after `=`", NO_VALUE);
        }
        if !value.contains(['"', '\'', '\n']) {
            let quote = if value.contains('\\') { '\'' } else { '"' };
            return Some((
                "a string needs quotes around it".to_owned(),
                format!("write {quote}{value}{quote}"),
            ));
        }
        if !value.contains(['"', '\\', '\n']) {
            return Some((
                "a string needs quotes around it".to_owned(),
                format!("write \"{value}\""),
            ));
        }
    }
    None
}

/// What the parser expected, as a sentence.
fn expectation(error: &ParseError) -> String {
    let parts: Vec<String> = (error.expected().unwrap_or(&[]).iter())
        .map(|expected| match expected {
            Expected::Literal(text) => format!("`{}`", text.escape_debug()),
            Expected::Description(text) => (*text).to_owned(),
            _ => "something else".to_owned(),
        })
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!("expected {}", parts.join(" or "))
    }
}
