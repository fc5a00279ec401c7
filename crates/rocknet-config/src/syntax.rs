//! TOML text to a [`Table`] with places: every syntax error of a file is found, and what can be understood is kept.

use toml_parser::decoder::ScalarKind;
use toml_parser::parser::{Event, EventKind, RecursionGuard, ValidateWhitespace};
use toml_parser::{ParseError, Source};

use crate::file::{Entry, Node, Origin, Table, Text, Value};
use crate::finding::{Code, Finding, Related, Report, Severity};
use crate::source::{FileId, Sources, Span};
use crate::syntax_hint;

/// Deepest nesting of tables and lists: the keys of RockNet need seven, and recursion over the tree stays shallow.
pub(crate) const MAX_DEPTH: usize = 32;

/// Reads one file of `sources`; what is wrong goes to `report`, and the rest is returned.
pub(crate) fn parse(sources: &Sources, file: FileId, report: &mut Report) -> Table {
    let text = sources.text(file);
    let source = Source::new(text.strip_prefix('\u{feff}').unwrap_or(text));
    let offset = text.len() - source.input().len();
    let mut errors: Vec<ParseError> = Vec::new();
    let events = events(source, &mut errors);
    let mut faults: Vec<usize> = errors.iter().map(|e| position(e).0 + offset).collect();
    faults.sort_unstable();
    let mut builder = Builder {
        source,
        offset,
        file,
        sources,
        errors: &mut errors,
        faults,
        torn: Vec::new(),
        here: 0,
        root: Table::new(Origin::Header),
        path: Vec::new(),
        skip: false,
        stack: Vec::new(),
        keys: Vec::new(),
        pending: Vec::new(),
        header: None,
        duplicates: Vec::new(),
    };
    for event in &events {
        builder.take(event);
    }
    builder.abandon();
    let Builder {
        root, duplicates, torn, ..
    } = builder;
    let mut findings = duplicates;
    findings.extend(torn.iter().map(|torn| syntax_hint::torn(sources, torn)));
    // One mistake often shows itself several times; the first on each line is the one that helps.
    let mut lines = Vec::new();
    for error in &errors {
        let (start, end) = position(error);
        let span = Span::new(file, start + offset, end + offset);
        let line = sources.line(span);
        let inside = |torn: &Torn| torn.open.start <= span.start && span.start <= torn.end;
        if lines.contains(&line) || torn.iter().any(inside) {
            continue;
        }
        if lines.len() < crate::finding::MAX_FINDINGS {
            lines.push(line);
        }
        findings.push(syntax_hint::finding(sources, span, error));
    }
    findings.sort_by_key(|f| f.location.as_ref().map(|l| (l.line, l.column)));
    findings.into_iter().for_each(|finding| report.push(finding));
    root
}

/// Where the parser found an error.
fn position(error: &ParseError) -> (usize, usize) {
    let at = error.unexpected().or(error.context()).unwrap_or_default();
    (at.start(), at.end())
}

/// A list or inline table that goes wrong on a later line than it begins on: every line after that is misread, so one
/// finding stands for all of them.
pub(crate) struct Torn {
    pub open: Span,
    /// Where it first goes wrong.
    pub fault: Span,
    pub end: u32,
    pub is_list: bool,
}

/// The parser's events for a whole document, nesting bounded.
pub(crate) fn events(source: Source<'_>, errors: &mut Vec<ParseError>) -> Vec<Event> {
    let tokens = source.lex().into_vec();
    let mut events = Vec::with_capacity(tokens.len());
    let mut checked = ValidateWhitespace::new(&mut events, source);
    let mut guarded = RecursionGuard::new(&mut checked, MAX_DEPTH as u32);
    toml_parser::parser::parse_document(&tokens, &mut guarded, errors);
    events
}

/// One list or inline table whose end has not come yet.
enum Open {
    List {
        items: Vec<Node>,
        start: Span,
    },
    Inline {
        table: Table,
        start: Span,
        keys: Vec<(String, Span)>,
    },
}

/// Turns events into tables. It keeps a stack of its own, so no input makes it recurse.
struct Builder<'s, 'e> {
    source: Source<'s>,
    /// Bytes before the source's first: a byte order mark.
    offset: usize,
    file: FileId,
    sources: &'e Sources,
    errors: &'e mut Vec<ParseError>,
    /// Places of the parser's errors, sorted.
    faults: Vec<usize>,
    torn: Vec<Torn>,
    /// End of the event being read.
    here: u32,
    root: Table,
    /// Header of the table that keys now go to.
    path: Vec<(String, Span)>,
    /// Keys now belong to a table that could not be opened.
    skip: bool,
    stack: Vec<Open>,
    /// Parts of the key being read.
    keys: Vec<(String, Span)>,
    /// The key outside all lists and inline tables that waits for its value.
    pending: Vec<(String, Span)>,
    /// Inside `[…]` (false) or `[[…]]` (true).
    header: Option<bool>,
    duplicates: Vec<Finding>,
}

impl Builder<'_, '_> {
    fn take(&mut self, event: &Event) {
        let span = Span::new(
            self.file,
            event.span().start() + self.offset,
            event.span().end() + self.offset,
        );
        self.here = span.end;
        match event.kind() {
            EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                self.abandon();
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
                Some(Open::Inline { keys, .. }) => *keys = std::mem::take(&mut self.keys),
                Some(Open::List { .. }) => self.keys.clear(),
                None => self.pending = std::mem::take(&mut self.keys),
            },
            EventKind::ArrayOpen => self.stack.push(Open::List {
                items: Vec::new(),
                start: span,
            }),
            EventKind::InlineTableOpen => {
                self.stack.push(Open::Inline {
                    table: Table::new(Origin::Inline),
                    start: span,
                    keys: Vec::new(),
                });
            }
            EventKind::ArrayClose => {
                if matches!(self.stack.last(), Some(Open::List { .. }))
                    && let Some(Open::List { items, start }) = self.stack.pop()
                {
                    self.close(Value::List(items), start, span);
                }
            }
            EventKind::InlineTableClose => {
                if matches!(self.stack.last(), Some(Open::Inline { .. }))
                    && let Some(Open::Inline { table, start, .. }) = self.stack.pop()
                {
                    self.close(Value::Table(table), start, span);
                }
            }
            EventKind::Scalar => {
                let value = self.scalar(event);
                self.value(Node { value, span });
            }
            EventKind::Newline if self.stack.is_empty() => {
                if self.header.take().is_some() {
                    // A header that never closed: its keys belong to a table nobody can name.
                    self.skip = true;
                    self.keys.clear();
                }
                self.abandon();
            }
            EventKind::KeySep
            | EventKind::ValueSep
            | EventKind::Whitespace
            | EventKind::Comment
            | EventKind::Newline
            | EventKind::Error => {}
        }
    }

    /// Drops what was begun and never ended; the parser has told. The key still counts as written, so that nobody
    /// calls it missing.
    fn abandon(&mut self) {
        if let Some(outermost) = self.stack.first() {
            let (open, is_list) = match outermost {
                Open::List { start, .. } => (*start, true),
                Open::Inline { start, .. } => (*start, false),
            };
            let first = self.faults.partition_point(|fault| *fault < open.start as usize);
            if let Some(fault) = self.faults.get(first).copied() {
                let end = self.here;
                self.tear(open, fault, end, is_list);
            }
        }
        self.stack.clear();
        if self.pending.is_empty() {
            self.pending = std::mem::take(&mut self.keys);
        }
        self.keys.clear();
        if let Some((_, span)) = self.pending.last() {
            let span = *span;
            self.value(Node {
                value: Value::Broken,
                span,
            });
        }
    }

    /// A list or inline table is complete; with an error in it nobody knows what it should have been.
    fn close(&mut self, value: Value, open: Span, end: Span) {
        let first = self.faults.partition_point(|fault| *fault < open.start as usize);
        let fault = self
            .faults
            .get(first)
            .copied()
            .filter(|fault| *fault <= end.end as usize);
        let is_list = matches!(value, Value::List(_));
        let value = if fault.is_some() { Value::Broken } else { value };
        if let (Some(fault), true) = (fault, self.stack.is_empty()) {
            self.tear(open, fault, end.end, is_list);
        }
        self.value(Node {
            value,
            span: open.to(end),
        });
    }

    fn tear(&mut self, open: Span, fault: usize, end: u32, is_list: bool) {
        let fault = Span::new(self.file, fault, fault + 1);
        if self.sources.line(fault) > self.sources.line(open) && self.torn.len() < crate::finding::MAX_FINDINGS {
            self.torn.push(Torn {
                open,
                fault,
                end,
                is_list,
            });
        }
    }

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

    /// A value is complete: it goes to the innermost open list or table, or under the current key.
    fn value(&mut self, node: Node) {
        match self.stack.last_mut() {
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Inline { table, keys, .. }) => {
                let keys = std::mem::take(keys);
                let outcome = insert(table, &keys, node, Origin::Dotted);
                self.told(outcome);
            }
            None => {
                let keys = std::mem::take(&mut self.pending);
                if self.skip {
                    return;
                }
                let outcome = match descend(&mut self.root, &self.path) {
                    Ok(table) => insert(table, &keys, node, Origin::Dotted),
                    Err(clash) => Err(clash),
                };
                self.told(outcome);
            }
        }
    }

    /// `[a.b]` or `[[a.b]]` is complete.
    fn open_table(&mut self) {
        let Some(is_list) = self.header.take() else { return };
        let keys = std::mem::take(&mut self.keys);
        self.skip = true;
        let Some((last, parents)) = keys.split_last() else {
            return;
        };
        let outcome = (|| {
            within_depth(&keys)?;
            let parent = implied(&mut self.root, parents, Origin::Implied)?;
            let (name, span) = last;
            if is_list {
                return open_item(parent, name, *span);
            }
            match parent.entries.get_mut(name) {
                None => {
                    let node = Node {
                        value: Value::Table(Table::new(Origin::Header)),
                        span: *span,
                    };
                    parent.entries.insert(name.clone(), Entry { key: *span, node });
                }
                Some(entry) => match &mut entry.node.value {
                    Value::Table(table) if table.origin == Origin::Implied => {
                        table.origin = Origin::Header;
                        entry.key = *span;
                        entry.node.span = *span;
                    }
                    _ => {
                        return Err(Clash::Twice {
                            name: name.clone(),
                            here: *span,
                            there: entry.key,
                        });
                    }
                },
            }
            Ok(())
        })();
        self.skip = outcome.is_err();
        self.told(outcome);
        self.path = keys;
    }

    fn told(&mut self, outcome: Result<(), Clash>) {
        let finding = match outcome {
            Ok(()) => return,
            Err(Clash::Twice { name, here, there }) => Finding {
                severity: Severity::Error,
                code: Code::Syntax,
                message: format!("`{name}` is written twice"),
                help: Some("keep one of the two, or give them different names".into()),
                location: Some(self.sources.locate(here)),
                related: vec![Related {
                    message: "first here".into(),
                    location: self.sources.locate(there),
                }],
            },
            Err(Clash::Deep(here)) => Finding {
                severity: Severity::Error,
                code: Code::Syntax,
                message: format!("tables nested more than {MAX_DEPTH} deep"),
                help: Some("no key of RockNet needs this; remove the dots".into()),
                location: Some(self.sources.locate(here)),
                related: Vec::new(),
            },
        };
        // Bounded like the report itself: ten thousand duplicates teach no more than the first ones.
        if self.duplicates.len() < crate::finding::MAX_FINDINGS {
            self.duplicates.push(finding);
        }
    }
}

/// Why a key cannot be put where it stands.
enum Clash {
    Twice { name: String, here: Span, there: Span },
    Deep(Span),
}

fn within_depth(keys: &[(String, Span)]) -> Result<(), Clash> {
    match keys.get(MAX_DEPTH) {
        Some((_, span)) => Err(Clash::Deep(*span)),
        None => Ok(()),
    }
}

/// Puts a value under a dotted key.
fn insert(table: &mut Table, keys: &[(String, Span)], node: Node, origin: Origin) -> Result<(), Clash> {
    within_depth(keys)?;
    let Some(((name, span), parents)) = keys.split_last() else {
        return Ok(());
    };
    let parent = implied(table, parents, origin)?;
    if let Some(entry) = parent.entries.get(name) {
        return Err(Clash::Twice {
            name: name.clone(),
            here: *span,
            there: entry.key,
        });
    }
    parent.entries.insert(name.clone(), Entry { key: *span, node });
    Ok(())
}

/// The table at a path that need not exist yet; made on the way with `origin`.
fn implied<'t>(mut table: &'t mut Table, keys: &[(String, Span)], origin: Origin) -> Result<&'t mut Table, Clash> {
    for (name, span) in keys {
        let entry = table.entries.entry(name.clone()).or_insert_with(|| {
            let node = Node {
                value: Value::Table(Table::new(origin)),
                span: *span,
            };
            Entry { key: *span, node }
        });
        let there = entry.key;
        let twice = || Clash::Twice {
            name: name.clone(),
            here: *span,
            there,
        };
        table = match &mut entry.node.value {
            // A header may add below any table but an inline one; a dotted key only to what dotted keys made.
            Value::Table(inner) => match (origin, inner.origin) {
                (_, Origin::Inline) => return Err(twice()),
                (Origin::Dotted, Origin::Header | Origin::Implied) => return Err(twice()),
                _ => inner,
            },
            Value::List(items) if origin == Origin::Implied => match items.last_mut().map(|n| &mut n.value) {
                Some(Value::Table(inner)) if inner.origin == Origin::Header => inner,
                _ => return Err(twice()),
            },
            _ => return Err(twice()),
        };
    }
    Ok(table)
}

/// The table of the current header, which exists.
fn descend<'t>(mut table: &'t mut Table, keys: &[(String, Span)]) -> Result<&'t mut Table, Clash> {
    for (name, span) in keys {
        let missing = || Clash::Twice {
            name: name.clone(),
            here: *span,
            there: *span,
        };
        let entry = table.entries.get_mut(name).ok_or_else(missing)?;
        table = match &mut entry.node.value {
            Value::Table(inner) => inner,
            Value::List(items) => match items.last_mut().map(|n| &mut n.value) {
                Some(Value::Table(inner)) => inner,
                _ => return Err(missing()),
            },
            _ => return Err(missing()),
        };
    }
    Ok(table)
}

/// One more element of an array of tables.
fn open_item(parent: &mut Table, name: &str, span: Span) -> Result<(), Clash> {
    let item = Node {
        value: Value::Table(Table::new(Origin::Header)),
        span,
    };
    match parent.entries.get_mut(name) {
        None => {
            let node = Node {
                value: Value::List(vec![item]),
                span,
            };
            parent.entries.insert(name.to_owned(), Entry { key: span, node });
            Ok(())
        }
        Some(entry) => match &mut entry.node.value {
            Value::List(items)
                if items
                    .last()
                    .and_then(Node::as_table)
                    .is_some_and(|t| t.origin == Origin::Header) =>
            {
                items.push(item);
                Ok(())
            }
            _ => Err(Clash::Twice {
                name: name.to_owned(),
                here: span,
                there: entry.key,
            }),
        },
    }
}
