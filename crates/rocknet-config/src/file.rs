//! Syntax tree of a configuration: tables, lists and values, each with its span.

use std::collections::BTreeMap;

use crate::source::Span;

/// Value with its span.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub value: Value,
    /// Span of the value. The span of the key is used for a table that a header or a dotted key defines, an array of
    /// tables, and a value that is missing or not closed.
    pub span: Span,
}

/// TOML value.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(Text),
    Integer(i64),
    /// Number with a fraction. Its value is not stored, because no key uses it.
    Float,
    Boolean(bool),
    /// Date or time. Its value is not stored, because no key uses it.
    Datetime,
    List(Vec<Node>),
    Table(Table),
    /// Invalid value. Its error has already been reported and must not be reported again.
    Broken,
}

/// String with its variables expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub value: String,
    /// The string before the expansion of variables; `None` if the string has no variables. Messages quote this
    /// template, because the expanded value may be a secret.
    pub template: Option<String>,
}

impl Text {
    /// Returns the string as it was written, which messages may quote.
    pub fn as_written(&self) -> &str {
        self.template.as_deref().unwrap_or(&self.value)
    }
}

/// Syntax that defined a table. TOML allows a table to be defined only once, and only in one of these ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Parent of another table: `a` in `[a.b]`. A later `[a]` may still define it.
    Implied,
    /// `[a]`, or an element of `[[a]]`
    Header,
    /// `a.b = 1`
    Dotted,
    /// `a = { … }`
    Inline,
}

/// TOML table.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub origin: Origin,
    pub entries: BTreeMap<String, Entry>,
}

/// Entry of a table.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Span of the key.
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
        self.entries.get(key).map(|entry| &entry.node)
    }

    pub fn table(&self, key: &str) -> Option<&Table> {
        self.node(key).and_then(Node::as_table)
    }

    /// Returns the entries in the order of the file. Entries of different files are in no particular order.
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

    /// Returns a string together with its written form; `None` for a value of another type.
    pub fn written(&self) -> Option<&Text> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a noun phrase for the type of the value, for messages. No message names the type of a broken value.
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

    /// Calls `each` on every string of this value, its elements and its entries. A string for which `each` returns
    /// false becomes [`Value::Broken`].
    pub fn each_text(&mut self, each: &mut dyn FnMut(&mut Text, Span) -> bool) {
        // The parser bounds the depth of nesting, which bounds this recursion.
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
