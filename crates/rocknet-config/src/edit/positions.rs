//! Keys of a text by position: finds the key that a finding is about, and the line of a key.

use crate::file::{Node, Table, Value};
use crate::finding::Report;
use crate::source::{FileId, Sources, Span};
use crate::syntax;

/// Keys of a text with their positions.
#[derive(Debug)]
pub struct KeyPositions {
    sources: Sources,
    file: FileId,
    /// Keys of the top table and of all inner tables. The key of a table comes before the keys in the table. The tables
    /// of a list have the path of the list, so several keys can have the same path.
    keys: Vec<PlacedKey>,
}

/// Key with its path, the span of its name (`key`), and the span of its value.
#[derive(Debug)]
struct PlacedKey {
    path: Vec<String>,
    key: Span,
    value: Span,
}

impl KeyPositions {
    /// Reads the keys of a text. Keys that cannot be read because of a syntax error are missing.
    pub fn new(text: &str) -> KeyPositions {
        let mut sources = Sources::default();
        let file = sources.add("rocknet.toml".into(), text.to_owned());
        let table = syntax::parse(&sources, file, &mut Report::default());
        let mut keys = Vec::new();
        collect(&table, &mut Vec::new(), &mut keys);
        KeyPositions { sources, file, keys }
    }

    /// Returns the path of the innermost key whose name or value contains a position; empty if no key does. `line`
    /// and `column`, in characters, are counted from 1.
    pub fn at(&self, line: usize, column: usize) -> &[String] {
        let Some(offset) = self.offset(line, column) else {
            return &[];
        };
        let found = self.keys.iter().filter(|key| {
            let span = key.key.to(key.value);
            (span.start as usize..span.end as usize).contains(&offset)
        });
        found.max_by_key(|key| key.path.len()).map_or(&[], |key| &key.path)
    }

    /// Returns the line of the first key with this path, counted from 1; `None` if the text has no such key.
    pub fn line(&self, path: &[&str]) -> Option<usize> {
        let key = self.keys.iter().find(|key| key.path == path)?;
        Some(self.sources.line(key.key))
    }

    /// Returns the byte offset of a position; `None` if the line or column is 0. A line after the last one stands for
    /// the end of the text. A column after the end of its line continues in the next line.
    fn offset(&self, line: usize, column: usize) -> Option<usize> {
        let text = self.sources.text(self.file);
        let line_start: usize = (text.split_inclusive('\n').take(line.checked_sub(1)?))
            .map(str::len)
            .sum();
        let bytes_before: usize = (text.get(line_start..)?.chars().take(column.checked_sub(1)?))
            .map(char::len_utf8)
            .sum();
        Some(line_start + bytes_before)
    }
}

/// Adds the keys of a table. `path`: keys that lead to the table.
fn collect(table: &Table, path: &mut Vec<String>, into: &mut Vec<PlacedKey>) {
    // The parser bounds the depth of tables, which bounds this recursion.
    for (name, entry) in &table.entries {
        path.push(name.clone());
        into.push(PlacedKey {
            path: path.clone(),
            key: entry.key,
            value: entry.node.span,
        });
        collect_value(&entry.node, path, into);
        path.pop();
    }
}

fn collect_value(node: &Node, path: &mut Vec<String>, into: &mut Vec<PlacedKey>) {
    match &node.value {
        Value::Table(table) => collect(table, path, into),
        Value::List(items) => items.iter().for_each(|item| collect_value(item, path, into)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# ä\n[server]\nworkers = 2\n[site.\"ä.test\"]\nroot = '/ä'\nheaders = { A = \"1\", B = \"2\" }\n\
                        [[site.\"ä.test\".rule]]\npath = \"/x\"\n";

    #[test]
    fn the_innermost_key_of_a_position_is_found() {
        let keys = KeyPositions::new(TEXT);
        for (line, column, expected) in [
            (1, 1, &[][..]),
            (3, 1, &["server", "workers"]),
            (3, 11, &["server", "workers"]),
            (4, 7, &["site", "ä.test"]),
            (5, 9, &["site", "ä.test", "root"]),
            (6, 10, &["site", "ä.test", "headers"]),
            (6, 17, &["site", "ä.test", "headers", "A"]),
            (6, 22, &["site", "ä.test", "headers", "B"]),
            (8, 8, &["site", "ä.test", "rule", "path"]),
            (0, 0, &[]),
            (99, 1, &[]),
            // From line 5 on, the text has fewer than 99 characters.
            (5, 99, &[]),
        ] {
            let found: Vec<&str> = keys.at(line, column).iter().map(String::as_str).collect();
            assert_eq!(found, expected, "{line}:{column}");
        }
    }

    #[test]
    fn keys_have_lines() {
        let keys = KeyPositions::new(TEXT);
        assert_eq!(keys.line(&["site", "ä.test"]), Some(4));
        assert_eq!(keys.line(&["site", "ä.test", "root"]), Some(5));
        assert_eq!(keys.line(&["site", "b.test"]), None);
        assert_eq!(KeyPositions::new("a = ").line(&["b"]), None);
    }
}
