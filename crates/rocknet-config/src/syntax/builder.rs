//! Builds tables from the parser's events. Any order of events is accepted, and no input causes recursion.

use toml_parser::decoder::ScalarKind;
use toml_parser::parser::{Event, EventKind};
use toml_parser::{ParseError, Source};

use crate::file::{Node, Origin, Table, Text, Value};
use crate::finding::{Code, Finding, MAX_FINDINGS, Related, Severity};
use crate::source::{FileId, Sources, Span};
use crate::syntax::tree::{self, KeyConflict, MAX_KEY_PARTS};

/// Result of parsing a file.
pub(super) struct ParsedFile {
    pub root: Table,
    /// Findings about keys and tables that are defined twice, and about keys with too many parts.
    pub duplicates: Vec<Finding>,
    pub broken: Vec<BrokenValue>,
}

/// List or inline table with an error after its first line. The parser misreads the lines after the error, so the whole
/// value gets only one finding.
pub(super) struct BrokenValue {
    /// Span of the opening bracket or brace.
    pub open: Span,
    /// Span of the first error.
    pub error: Span,
    /// Offset of the end of the value.
    pub end: u32,
    /// True for a list, false for an inline table.
    pub is_list: bool,
}

/// List or inline table whose end has not been read yet.
enum OpenValue {
    List {
        items: Vec<Node>,
        start: Span,
    },
    Inline {
        table: Table,
        start: Span,
        /// Parts of the key whose value has not been read yet.
        keys: Vec<(String, Span)>,
    },
}

/// Builder of tables. It uses an explicit stack, so that no input causes recursion.
pub(super) struct Builder<'s, 'e> {
    source: Source<'s>,
    /// Number of bytes before the source: the byte order mark.
    offset: usize,
    file: FileId,
    sources: &'e Sources,
    errors: &'e mut Vec<ParseError>,
    /// Offsets of the parser's errors, sorted.
    error_offsets: Vec<usize>,
    broken: Vec<BrokenValue>,
    /// End offset of the current event.
    event_end: u32,
    root: Table,
    /// Header of the current table, which keys are added to.
    path: Vec<(String, Span)>,
    /// True if the current table could not be opened, so that its keys are skipped.
    skip: bool,
    /// Lists and inline tables that are open, from the outermost to the innermost.
    stack: Vec<OpenValue>,
    /// Parts of the current key.
    keys: Vec<(String, Span)>,
    /// Key outside of lists and inline tables whose value has not been read yet.
    pending: Vec<(String, Span)>,
    /// Current header: `[…]` (false) or `[[…]]` (true); `None` outside of headers.
    header: Option<bool>,
    duplicates: Vec<Finding>,
}

impl<'s, 'e> Builder<'s, 'e> {
    /// Creates a builder. `error_offsets`: offsets of the parser's errors, sorted. Errors in keys and values are added
    /// to `errors`.
    pub fn new(
        sources: &'e Sources,
        file: FileId,
        source: Source<'s>,
        offset: usize,
        error_offsets: Vec<usize>,
        errors: &'e mut Vec<ParseError>,
    ) -> Builder<'s, 'e> {
        Builder {
            source,
            offset,
            file,
            sources,
            errors,
            error_offsets,
            broken: Vec::new(),
            event_end: 0,
            root: Table::new(Origin::Header),
            path: Vec::new(),
            skip: false,
            stack: Vec::new(),
            keys: Vec::new(),
            pending: Vec::new(),
            header: None,
            duplicates: Vec::new(),
        }
    }

    /// Returns the result. Called after the last event.
    pub fn finish(mut self) -> ParsedFile {
        self.discard_open();
        ParsedFile {
            root: self.root,
            duplicates: self.duplicates,
            broken: self.broken,
        }
    }

    /// Processes the next event of the parser.
    pub fn handle(&mut self, event: &Event) {
        let span = Span::new(
            self.file,
            event.span().start() + self.offset,
            event.span().end() + self.offset,
        );
        self.event_end = span.end;
        match event.kind() {
            EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                self.discard_open();
                self.header = Some(event.kind() == EventKind::ArrayTableOpen);
            }
            EventKind::StdTableClose | EventKind::ArrayTableClose => self.open_table(),
            EventKind::SimpleKey => {
                let mut key = String::new();
                if let Some(raw) = self.source.get(event) {
                    raw.decode_key(&mut key, self.errors);
                }
                self.keys.push((key, span));
            }
            EventKind::KeyValSep => match self.stack.last_mut() {
                Some(OpenValue::Inline { keys, .. }) => *keys = std::mem::take(&mut self.keys),
                // The parser reports an `=` in a list as an error.
                Some(OpenValue::List { .. }) => self.keys.clear(),
                None => self.pending = std::mem::take(&mut self.keys),
            },
            EventKind::ArrayOpen => self.stack.push(OpenValue::List {
                items: Vec::new(),
                start: span,
            }),
            EventKind::InlineTableOpen => {
                self.stack.push(OpenValue::Inline {
                    table: Table::new(Origin::Inline),
                    start: span,
                    keys: Vec::new(),
                });
            }
            EventKind::ArrayClose => {
                if matches!(self.stack.last(), Some(OpenValue::List { .. }))
                    && let Some(OpenValue::List { items, start }) = self.stack.pop()
                {
                    self.close(Value::List(items), start, span);
                }
            }
            EventKind::InlineTableClose => {
                if matches!(self.stack.last(), Some(OpenValue::Inline { .. }))
                    && let Some(OpenValue::Inline { table, start, .. }) = self.stack.pop()
                {
                    self.close(Value::Table(table), start, span);
                }
            }
            EventKind::Scalar => {
                let value = self.scalar(event);
                self.add_value(Node { value, span });
            }
            EventKind::Newline if self.stack.is_empty() => {
                if self.header.take().is_some() {
                    // The header is not closed, so the table of the following keys is unknown.
                    self.skip = true;
                    self.keys.clear();
                }
                self.discard_open();
            }
            EventKind::KeySep
            | EventKind::ValueSep
            | EventKind::Whitespace
            | EventKind::Comment
            | EventKind::Newline
            | EventKind::Error => {}
        }
    }

    /// Discards lists and inline tables that are not closed. The key of such a value, and a key without a value, get a
    /// broken value, so that the check does not report the key as missing. The parser has already reported the error.
    fn discard_open(&mut self) {
        if let Some(outermost) = self.stack.first() {
            let (open, is_list) = match outermost {
                OpenValue::List { start, .. } => (*start, true),
                OpenValue::Inline { start, .. } => (*start, false),
            };
            let first = self
                .error_offsets
                .partition_point(|error_at| *error_at < open.start as usize);
            if let Some(error_at) = self.error_offsets.get(first).copied() {
                let end = self.event_end;
                self.record_broken(open, error_at, end, is_list);
            }
        }
        self.stack.clear();
        // A key without `=` is still in `keys`.
        if self.pending.is_empty() {
            self.pending = std::mem::take(&mut self.keys);
        }
        self.keys.clear();
        if let Some((_, span)) = self.pending.last() {
            let span = *span;
            self.add_value(Node {
                value: Value::Broken,
                span,
            });
        }
    }

    /// Handles the end of a list or inline table. If there was an error inside, the value is broken.
    fn close(&mut self, value: Value, open: Span, end: Span) {
        let first = self
            .error_offsets
            .partition_point(|error_at| *error_at < open.start as usize);
        let error_at = self
            .error_offsets
            .get(first)
            .copied()
            .filter(|error_at| *error_at <= end.end as usize);
        let is_list = matches!(value, Value::List(_));
        let value = if error_at.is_some() { Value::Broken } else { value };
        // Of nested values, only the outermost is recorded.
        if let (Some(error_at), true) = (error_at, self.stack.is_empty()) {
            self.record_broken(open, error_at, end.end, is_list);
        }
        self.add_value(Node {
            value,
            span: open.to(end),
        });
    }

    /// Records a broken value if its first error is after its first line. For an error on the first line, the finding
    /// of the parser is sufficient. `error_at`: offset of the error.
    fn record_broken(&mut self, open: Span, error_at: usize, end: u32, is_list: bool) {
        let error = Span::new(self.file, error_at, error_at + 1);
        if self.sources.line(error) > self.sources.line(open) && self.broken.len() < MAX_FINDINGS {
            self.broken.push(BrokenValue {
                open,
                error,
                end,
                is_list,
            });
        }
    }

    /// Returns the value of a scalar; [`Value::Broken`] after an error.
    fn scalar(&mut self, event: &Event) -> Value {
        let Some(raw) = self.source.get(event) else {
            return Value::Broken;
        };
        let before = self.errors.len();
        let mut text = String::new();
        let kind = raw.decode_scalar(&mut text, self.errors);
        if self.errors.len() > before {
            return Value::Broken;
        }
        match kind {
            ScalarKind::String => Value::Text(Text {
                value: text,
                template: None,
            }),
            ScalarKind::Boolean(value) => Value::Boolean(value),
            ScalarKind::DateTime => Value::Datetime,
            ScalarKind::Float => Value::Float,
            ScalarKind::Integer(radix) => match i64::from_str_radix(&text, radix.value()) {
                Ok(number) => Value::Integer(number),
                Err(_) => {
                    self.errors
                        .push(ParseError::new("number out of range").with_unexpected(event.span()));
                    Value::Broken
                }
            },
        }
    }

    /// Adds a complete value to the innermost open list or table, or under the current key.
    fn add_value(&mut self, node: Node) {
        match self.stack.last_mut() {
            Some(OpenValue::List { items, .. }) => items.push(node),
            Some(OpenValue::Inline { table, keys, .. }) => {
                let keys = std::mem::take(keys);
                let outcome = tree::insert(table, &keys, node, Origin::Dotted);
                self.record(outcome);
            }
            None => {
                let keys = std::mem::take(&mut self.pending);
                if self.skip {
                    return;
                }
                let outcome = match tree::descend(&mut self.root, &self.path) {
                    Ok(table) => tree::insert(table, &keys, node, Origin::Dotted),
                    Err(conflict) => Err(conflict),
                };
                self.record(outcome);
            }
        }
    }

    /// Handles the end of a header `[a.b]` or `[[a.b]]`.
    fn open_table(&mut self) {
        let Some(is_list) = self.header.take() else { return };
        let keys = std::mem::take(&mut self.keys);
        self.skip = true;
        if keys.is_empty() {
            return;
        }
        let outcome = tree::open(&mut self.root, &keys, is_list);
        self.skip = outcome.is_err();
        self.record(outcome);
        self.path = keys;
    }

    /// Adds a finding if a key or table could not be added.
    fn record(&mut self, outcome: Result<(), KeyConflict>) {
        // The number is bounded like the number of findings in a report. Ten thousand duplicates would not help more
        // than the first ones.
        if self.duplicates.len() >= MAX_FINDINGS {
            return;
        }
        let finding = match outcome {
            Ok(()) => return,
            Err(KeyConflict::Duplicate { name, span, first }) => Finding {
                severity: Severity::Error,
                code: Code::Syntax,
                message: format!("`{name}` is defined twice"),
                help: Some("keep one of the two, or give them different names".into()),
                location: Some(self.sources.locate(span)),
                related: vec![Related {
                    message: "first defined here".into(),
                    location: self.sources.locate(first),
                }],
            },
            Err(KeyConflict::TooDeep(span)) => Finding {
                severity: Severity::Error,
                code: Code::Syntax,
                message: format!("the key has more than {MAX_KEY_PARTS} parts"),
                help: Some("names with dots need quotes: [site.\"example.com\"]".into()),
                location: Some(self.sources.locate(span)),
                related: Vec::new(),
            },
        };
        self.duplicates.push(finding);
    }
}
