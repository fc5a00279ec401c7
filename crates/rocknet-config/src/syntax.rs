//! Parses TOML into a [`Table`] with spans. Parsing continues after a syntax error: the valid parts are kept, and
//! further errors are reported.

mod builder;
mod hint;
mod tree;

use toml_parser::parser::{Event, RecursionGuard, ValidateWhitespace};
use toml_parser::{ParseError, Source};

use crate::file::Table;
use crate::finding::{MAX_FINDINGS, Report};
use crate::source::{FileId, Sources, Span};
use builder::{BrokenValue, Builder, ParsedFile};

pub(crate) use tree::MAX_KEY_PARTS;

/// Maximum nesting of lists and inline tables. RockNet's keys need three levels. Together with [`MAX_KEY_PARTS`], this
/// constant bounds the depth of the tree, and with it the depth of every recursion over the tree.
const MAX_NESTING: u32 = 16;

/// Parses one file of `sources`. Errors are added to `report`, and the valid parts are returned.
pub(crate) fn parse(sources: &Sources, file: FileId, report: &mut Report) -> Table {
    let text = sources.text(file);
    let source = Source::new(text.strip_prefix('\u{feff}').unwrap_or(text));
    // Length of the byte order mark, which the parser does not receive.
    let offset = text.len() - source.input().len();
    let mut errors: Vec<ParseError> = Vec::new();
    let events = events(source, &mut errors);
    let mut error_offsets: Vec<usize> = errors.iter().map(|e| position(e).0 + offset).collect();
    error_offsets.sort_unstable();
    let mut builder = Builder::new(sources, file, source, offset, error_offsets, &mut errors);
    for event in &events {
        builder.handle(event);
    }
    let ParsedFile {
        root,
        duplicates,
        broken,
    } = builder.finish();
    let mut findings = duplicates;
    findings.extend(broken.iter().map(|broken| hint::broken_value(sources, broken)));
    // One mistake often causes several errors. Only the first on each line is reported, because it is the most helpful.
    // Errors inside a broken value are skipped, because the whole value has one finding. The number of findings is
    // bounded, because a report does not store more than `MAX_FINDINGS`.
    let mut reported_lines = Vec::new();
    for error in &errors {
        let (start, end) = position(error);
        let span = Span::new(file, start + offset, end + offset);
        let line = sources.line(span);
        let inside = |broken: &BrokenValue| broken.open.start <= span.start && span.start <= broken.end;
        if reported_lines.contains(&line) || broken.iter().any(inside) {
            continue;
        }
        findings.push(hint::finding(sources, span, error));
        reported_lines.push(line);
        if reported_lines.len() >= MAX_FINDINGS {
            break;
        }
    }
    findings.sort_by_key(|f| f.location.as_ref().map(|l| (l.line, l.column)));
    findings.into_iter().for_each(|finding| report.push(finding));
    root
}

/// Returns the start and end offset of an error of the parser, counted from the end of the byte order mark. Both are 0
/// if the error has no position.
fn position(error: &ParseError) -> (usize, usize) {
    let at = error.unexpected().or(error.context()).unwrap_or_default();
    (at.start(), at.end())
}

/// Returns the parser's events for a whole document, with bounded nesting.
pub(crate) fn events(source: Source<'_>, errors: &mut Vec<ParseError>) -> Vec<Event> {
    let tokens = source.lex().into_vec();
    let mut events = Vec::with_capacity(tokens.len());
    let mut checked = ValidateWhitespace::new(&mut events, source);
    let mut guarded = RecursionGuard::new(&mut checked, MAX_NESTING);
    toml_parser::parser::parse_document(&tokens, &mut guarded, errors);
    events
}
