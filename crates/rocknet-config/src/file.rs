//! A configuration as written: tables, lists and values, each with its place, not yet understood.

use std::collections::BTreeMap;

use crate::source::Span;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub value: Value,
    /// The value's text; for a table written with a header, the last key of that header.
    pub span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(Text),
    Integer(i64),
    Float,
    Boolean(bool),
    Datetime,
    List(Vec<Node>),
    Table(Table),
    /// Something stood here that is no value; the parser has told so, and nobody needs to tell it again.
    Broken,
}

/// A string, with its variables filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub value: String,
    /// As it stood in the file, when variables were filled in: what messages show, because values may be secrets.
    pub template: Option<String>,
}

impl Text {
    /// What a message may show.
    pub fn as_written(&self) -> &str {
        self.template.as_deref().unwrap_or(&self.value)
    }
}

/// How a table came to be; TOML allows a table to be opened once only, and only in one of these ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Named on the way to another: `a` in `[a.b]`.
    Implied,
    /// `[a]`
    Header,
    /// `a.b = 1`
    Dotted,
    /// `a = { … }`
    Inline,
}

#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub origin: Origin,
    pub entries: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Where the key stands.
    pub key: Span,
    pub node: Node,
}

impl Table {
    pub fn new(origin: Origin) -> Table {
        Table {
            origin,
            entries: BTreeMap::new(),
        }
    }

    pub fn node(&self, key: &str) -> Option<&Node> {
        self.entries.get(key).map(|e| &e.node)
    }

    pub fn table(&self, key: &str) -> Option<&Table> {
        self.node(key).and_then(Node::as_table)
    }

    /// Entries in the order they were written, as far as they are in one file.
    pub fn in_order(&self) -> Vec<(&str, &Entry)> {
        let mut all: Vec<_> = self.entries.iter().map(|(key, entry)| (key.as_str(), entry)).collect();
        all.sort_by_key(|(_, entry)| entry.key.start);
        all
    }
}

impl Node {
    pub fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(&text.value),
            _ => None,
        }
    }

    /// The string with what a message may show of it.
    pub fn written(&self) -> Option<&Text> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What kind of value this is, as a message says it.
    pub fn noun(&self) -> &'static str {
        match &self.value {
            Value::Text(_) => "a string",
            Value::Integer(_) => "a number",
            Value::Float => "a number with a fraction",
            Value::Boolean(_) => "true or false",
            Value::Datetime => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::Broken => "nothing",
        }
    }

    /// Calls `each` on every string below, this node included; where it says false, the value counts as broken.
    pub fn each_text(&mut self, each: &mut dyn FnMut(&mut Text, Span) -> bool) {
        // Depth is bounded by the parser (MAX_DEPTH), so recursion is too.
        match &mut self.value {
            Value::Text(text) => {
                if !each(text, self.span) {
                    self.value = Value::Broken;
                }
            }
            Value::List(items) => items.iter_mut().for_each(|item| item.each_text(each)),
            Value::Table(table) => table.entries.values_mut().for_each(|entry| entry.node.each_text(each)),
            Value::Integer(_) | Value::Float | Value::Boolean(_) | Value::Datetime | Value::Broken => {}
        }
    }
}
