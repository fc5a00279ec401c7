//! Messages for TOML syntax errors, with the most likely correction of the line.

use toml_parser::{Expected, ParseError};

use crate::finding::{Code, Finding, Related, Severity};
use crate::source::{Sources, Span};
use crate::syntax::builder::BrokenValue;

/// Each row contains a part of the parser's description of an error, the message, and the help. The first row whose
/// part occurs in the description is used.
const MESSAGES: &[(&str, &str, &str)] = &[
    (
        "string values must be quoted",
        "a string needs quotes",
        "write it as \"…\"",
    ),
    ("key with no value", "a key has no value", "write `key = value`"),
    ("missing value for key", "a key has no value", "write `key = value`"),
    ("missing value", "the value after `=` is missing", NO_VALUE),
    (
        "invalid boolean",
        "the value is neither true nor false",
        "write true or false, or put a string in quotes",
    ),
    // The parser also calls a missing value invalid.
    ("invalid value", "the value after `=` is missing", NO_VALUE),
    ("extra `=`", "there is one `=` too many", "write `key = value`"),
    ("extra assignment", "there is one `=` too many", "write `key = value`"),
    (
        "unclosed array table",
        "the closing `]]` of the header is missing",
        "close it on the same line",
    ),
    (
        "unclosed table",
        "the closing `]` of the header is missing",
        "write `[name]` on a line of its own",
    ),
    (
        "missing table open",
        "there is a `]` without `[`",
        "write `[name]` on a line of its own",
    ),
    ("unclosed array", "the list is not closed", "end it with `]`"),
    (
        "missing array opening",
        "there is a `]` without `[`",
        "begin the list with `[`",
    ),
    ("unclosed inline table", "the table is not closed", "end it with `}`"),
    (
        "missing inline table opening",
        "there is a `}` without `{`",
        "begin the table with `{`, as in { cert = \"…\" }",
    ),
    (
        "missing comma",
        "a comma is missing between two elements",
        "put `,` between them",
    ),
    ("extra comma", "there is one comma too many", "remove it"),
    (
        "missing assignment",
        "a key in an inline table has no `=`",
        "write { key = value }",
    ),
    (
        "missing key",
        "a value in an inline table has no key",
        "write { key = value }",
    ),
    (
        "invalid table",
        "the header has no name",
        "write `[server]` or `[site.\"example.com\"]`",
    ),
    (
        "invalid unquoted key",
        "the name needs quotes",
        "only names of letters, digits, `-` and `_` need no quotes: write \"…\"",
    ),
    (
        "unquoted keys cannot be empty",
        "the key is missing",
        "write `key = value`",
    ),
    (
        "too few unicode",
        "`\\u` and `\\U` take 4 and 8 hexadecimal digits",
        BACKSLASH,
    ),
    (
        "carriage return",
        "there is a carriage return without a newline",
        "save the file with Unix line endings",
    ),
    (
        "invalid comment character",
        "a comment contains a control character",
        "remove it",
    ),
    (
        "unexpected leading zero",
        "a decimal number cannot have a leading zero",
        "remove the leading zero, or write it as a string in quotes",
    ),
    (
        "integers with a radix",
        "numbers with a prefix cannot have a sign",
        "write it in decimal",
    ),
    (
        "radix must be lowercase",
        "the prefix of a number must be lower case",
        "write 0x, 0o or 0b",
    ),
    (
        "`_` may only",
        "`_` is allowed only between digits",
        "write 1_000 or 1000",
    ),
    (
        "number out of range",
        "the number does not fit in 64 bits",
        "write a number from -9223372036854775808 to 9223372036854775807",
    ),
    (
        "max recursion depth",
        "lists or tables are nested too deep",
        "no key of RockNet needs such nesting",
    ),
    (
        "unexpected content",
        "unexpected text at the end of the line",
        "write one `key = value` per line",
    ),
    (
        "unexpected key or value",
        "unexpected text",
        "write one `key = value` per line",
    ),
];

/// Help for a missing value after `=`.
const NO_VALUE: &str = "write a string in quotes, a number, true, false or a [list]";

/// Help for an invalid escape sequence.
const BACKSLASH: &str = "write the text in single quotes, '…', where `\\` is literal, or double it: `\\\\`";

/// Returns the finding for one error of the parser.
pub(crate) fn finding(sources: &Sources, span: Span, error: &ParseError) -> Finding {
    let description = error.description();
    let mut location = sources.locate(span);
    let (message, help) = if let Some((token, message, help)) = bare_text(sources, span, error) {
        location = sources.locate(token);
        (message, help)
    } else if let Some((backslash, message, help)) = windows_path(sources, span, error) {
        location = sources.locate(backslash);
        (message, help)
    } else if let Some(message_and_help) = foreign_syntax(sources, span, error) {
        message_and_help
    } else if let Some((_, message, help)) = MESSAGES.iter().find(|(part, _, _)| description.contains(part)) {
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

/// Returns the finding for a list or table with an error after its first line.
pub(crate) fn broken_value(sources: &Sources, broken: &BrokenValue) -> Finding {
    let (noun, end) = if broken.is_list { ("list", "]") } else { ("table", "}") };
    Finding {
        severity: Severity::Error,
        code: Code::Syntax,
        message: format!("the {noun} that begins here is not closed, or lacks a comma"),
        help: Some(format!("end it with `{end}`, and put `,` between its elements")),
        location: Some(sources.locate(broken.open)),
        related: vec![Related {
            message: "the error is here".into(),
            location: sources.locate(broken.error),
        }],
    }
}

/// Returns the span of the value around the start of a span: up to white space, a comma, bracket, brace, `=` or `#` on
/// each side.
fn token(sources: &Sources, span: Span) -> Option<Span> {
    let text = sources.text(span.file);
    let at = span.start as usize;
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}' | '=' | '#');
    let start = text.get(..at)?.rfind(ends).map_or(0, |end| end + 1);
    let length = text.get(start..)?.find(ends).unwrap_or(text.len() - start);
    Some(Span::new(span.file, start, start + length))
}

/// Detects a string without quotes that TOML reads as an invalid number, because it begins with a dot or a digit:
/// `./site`, `127.0.0.1:80`. Returns the span of the string, the message and the help.
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
        let message = "a string needs quotes".to_owned();
        (token, message, format!("write \"{text}\""))
    })
}

/// Detects a Windows path in double quotes, where each backslash begins an escape sequence. Returns the span of the
/// invalid backslash, the message and the help.
fn windows_path(sources: &Sources, span: Span, error: &ParseError) -> Option<(Span, String, String)> {
    let description = error.description();
    if !description.contains("too few unicode") && !description.contains("missing escaped value") {
        return None;
    }
    let text = sources.text(span.file);
    let before = text.get(..span.start as usize)?;
    // The error is inside or just after the escape sequence, so the last backslash before it on the same line begins
    // the sequence.
    let backslash = before.rfind('\\')?;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let escape = Span::new(span.file, backslash, backslash + 1);
    if backslash < line_start {
        return None;
    }
    let letter = text
        .get(backslash + 1..)?
        .chars()
        .next()
        .filter(|c| !c.is_whitespace())?;
    let message = format!("in \"…\" a `\\` begins an escape sequence, and `\\{letter}` does not begin a valid one");
    let quoted = text
        .get(line_start..backslash)?
        .rfind('"')
        .map(|at| line_start + at + 1);
    let inner = quoted.and_then(|start| text.get(start..)?.split(['"', '\n']).next());
    let help = match inner.filter(|inner| !inner.contains('\'')) {
        Some(inner) => format!("write '{inner}': in single quotes a `\\` is literal"),
        None => BACKSLASH.to_owned(),
    };
    Some((escape, message, help))
}

/// Detects syntax of other configuration languages, and strings without correct quotes or escape sequences. Returns the
/// message and the help.
fn foreign_syntax(sources: &Sources, span: Span, error: &ParseError) -> Option<(String, String)> {
    let text = sources.text(span.file);
    let line_start = text.get(..span.start as usize)?.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(line_start..)?.split('\n').next()?.trim();
    let hint = |message: &str, help: &str| Some((message.to_owned(), help.to_owned()));
    if line.contains(['“', '”', '„', '‘', '’']) {
        return hint(
            "typographic quotes are not quotes in TOML",
            "write straight quotes: \"…\"",
        );
    }
    if line.ends_with(';') {
        return hint(
            "lines must not end with a semicolon",
            "write `key = \"value\"` without it",
        );
    }
    if line.ends_with('{') && !line.contains('=') {
        let help = "write a header instead, `[site.\"example.com\"]`; it applies until the next header";
        return hint("TOML has no blocks in braces", help);
    }
    if line == "}" {
        return hint(
            "there is a `}` without `{`",
            "remove it: a table ends at the next header",
        );
    }
    if line.starts_with("//") || line.starts_with("/*") || line.starts_with("--") {
        return hint("this is not a comment in TOML", "begin comments with `#`");
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
            return Some(("a key and its value are separated by `=`, not `:`".to_owned(), help));
        }
    }
    // The error of an incomplete escape sequence lists quotes among the expected characters, which does not mean that a
    // closing quote is missing.
    if error.description().contains("missing escaped value") {
        return hint("`\\` begins an escape sequence, but none follows", BACKSLASH);
    }
    let expects = |quote: &'static str| error.expected().is_some_and(|e| e.contains(&Expected::Literal(quote)));
    if expects("\"") || expects("'") || expects("\"\"\"") || expects("'''") {
        return hint(
            "the string has no closing quote",
            "end it with the same quote on the same line",
        );
    }
    if error.description().contains("string values must be quoted") {
        let value = sources.slice(span).trim();
        if value.is_empty() {
            return hint("the value after `=` is missing", NO_VALUE);
        }
        if !value.contains(['"', '\'', '\n']) {
            let quote = if value.contains('\\') { '\'' } else { '"' };
            return Some((
                "a string needs quotes".to_owned(),
                format!("write {quote}{value}{quote}"),
            ));
        }
        if !value.contains(['"', '\\', '\n']) {
            return Some(("a string needs quotes".to_owned(), format!("write \"{value}\"")));
        }
    }
    None
}

/// Returns help that lists the tokens that the parser expected.
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
