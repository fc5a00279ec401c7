//! Removal of keys and tables. Comments that belong to the rest of the file stay.

use toml_edit::{Document, DocumentMut, Item, Key, Table};

use super::Editor;

impl Editor {
    /// Removes the lines of a key, so that the comments above them stay. `toml_edit` would remove these comments with
    /// the key. Returns false, without a change, if the path does not lead to a key with lines of its own, or if no
    /// comment is above them.
    pub(super) fn remove_below_comments(&mut self, path: &[&str]) -> bool {
        let Some((key, parents)) = path.split_last() else {
            return false;
        };
        let mut item = self.document.as_item();
        for part in parents {
            match item.as_table().and_then(|table| table.get(part)) {
                Some(inner) => item = inner,
                None => return false,
            }
        }
        let found = item.as_table().and_then(|table| table.get_key_value(key));
        if !found.is_some_and(|(key, item)| has_comment_above(key, item)) {
            return false;
        }
        // `DocumentMut` has no spans, so the lines are found in its text, which is parsed again afterwards.
        let text = self.document.to_string();
        let Some(document) = without_lines(&text, path).and_then(|text| text.parse::<DocumentMut>().ok()) else {
            return false;
        };
        self.document = document;
        true
    }

    /// Keeps the comments above a removed table that do not belong to it. They are written above the next table, or at
    /// the end of the file.
    pub(super) fn keep_comments(&mut self, removed: &Item) {
        let mut tables = Vec::new();
        collect(removed, &mut tables);
        let Some(first) = tables.iter().filter_map(|table| table.position()).min() else {
            return;
        };
        let kept: String = tables.iter().map(|table| above_header(table)).collect();
        if kept.is_empty() {
            return;
        }
        let mut rest = Vec::new();
        collect(self.document.as_item(), &mut rest);
        let next = rest
            .iter()
            .filter_map(|table| table.position())
            .filter(|at| *at > first)
            .min();
        match next {
            Some(next) => prepend(self.document.as_item_mut(), next, &kept),
            None => {
                let trailing = self.document.trailing().as_str().unwrap_or_default();
                self.document.set_trailing(format!("{kept}{trailing}"));
            }
        }
    }
}

/// Adds every table of an item that has a header of its own, in any order.
fn collect<'i>(item: &'i Item, into: &mut Vec<&'i Table>) {
    let mut add = |table: &'i Table| {
        if has_header(table) {
            into.push(table);
        }
        // The parser bounds the depth of tables, which bounds this recursion.
        table.iter().for_each(|(_, item)| collect(item, into));
    };
    match item {
        Item::Table(table) => add(table),
        Item::ArrayOfTables(tables) => tables.iter().for_each(add),
        Item::Value(_) | Item::None => {}
    }
}

fn has_header(table: &Table) -> bool {
    !table.is_implicit() && !table.is_dotted()
}

/// Returns the lines above a header up to the last empty line; an empty string if they contain no comment. A comment
/// directly above the header belongs to the table and is left out.
fn above_header(table: &Table) -> &str {
    let above = table
        .decor()
        .prefix()
        .and_then(|prefix| prefix.as_str())
        .unwrap_or_default();
    let end = above.rfind("\n\n").map_or(0, |at| at + 1);
    if above[..end].contains('#') { &above[..end] } else { "" }
}

/// Writes lines above the header of the table with this position.
fn prepend(item: &mut Item, position: isize, lines: &str) {
    let write = |table: &mut Table| {
        if table.position() == Some(position) && has_header(table) {
            let above = table
                .decor()
                .prefix()
                .and_then(|prefix| prefix.as_str())
                .unwrap_or_default();
            let joined = format!("{lines}{above}");
            table.decor_mut().set_prefix(joined);
        }
        table.iter_mut().for_each(|(_, item)| prepend(item, position, lines));
    };
    match item {
        Item::Table(table) => write(table),
        Item::ArrayOfTables(tables) => tables.iter_mut().for_each(write),
        Item::Value(_) | Item::None => {}
    }
}

/// Returns true if a comment is above the line of a key, or above a line of the dotted keys below it.
fn has_comment_above(key: &Key, item: &Item) -> bool {
    let above = key.leaf_decor().prefix().and_then(|above| above.as_str());
    let is_commented = above.is_some_and(|above| above.contains('#'));
    match item {
        Item::Value(_) => is_commented,
        Item::Table(table) if table.is_dotted() => {
            let mut inner = table.iter().filter_map(|(name, _)| table.get_key_value(name));
            inner.any(|(key, item)| has_comment_above(key, item))
        }
        _ => false,
    }
}

/// Returns a text without the lines of a key; `None` if there is no such key, or if a part of it has a header.
fn without_lines(text: &str, path: &[&str]) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let (key, parents) = path.split_last()?;
    let mut item: &Item = document.as_item();
    for part in parents {
        item = item.as_table()?.get(part)?;
    }
    let (key, item) = item.as_table()?.get_key_value(key)?;
    let mut spans = Vec::new();
    collect_spans(key, item, &mut spans)?;
    spans.sort_unstable();
    let (mut rest, mut end) = (String::new(), 0);
    for (key_start, value_end) in spans {
        let line_start = text[..key_start].rfind('\n').map_or(0, |at| at + 1);
        rest.push_str(text.get(end..line_start)?);
        end = text[value_end..].find('\n').map_or(text.len(), |at| value_end + at + 1);
    }
    rest.push_str(&text[end..]);
    Some(rest)
}

/// Adds the start of the key and the end of the value of each line. `None`: a part has a header of its own.
fn collect_spans(key: &Key, item: &Item, into: &mut Vec<(usize, usize)>) -> Option<()> {
    match item {
        Item::Value(value) => into.push((key.span()?.start, value.span()?.end)),
        Item::Table(table) if table.is_dotted() => {
            for (name, _) in table {
                let (key, item) = table.get_key_value(name)?;
                collect_spans(key, item, into)?;
            }
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_above_a_removed_key_stay() {
        let text = "# top\na = 1 # beside\n\n[t]\n# one\n\n# two\nb = [\n  1, # element\n] # end\n# three\n\n# next\n[u]\n# c\n\
                    x.y = 1\n# last\nz = 1\n";
        for (path, removed) in [
            (&["a"][..], "a = 1 # beside\n"),
            (&["t", "b"], "b = [\n  1, # element\n] # end\n"),
            (&["u", "z"], "z = 1\n"),
            (&["u", "x"], "x.y = 1\n"),
        ] {
            let mut editor = Editor::new(text).unwrap();
            assert!(editor.remove(path), "{path:?}");
            assert_eq!(editor.to_string(), text.replacen(removed, "", 1), "{path:?}");
        }
        // A table goes with the comment directly above its header.
        let mut editor = Editor::new(text).unwrap();
        assert!(editor.remove(&["u"]));
        assert!(!editor.to_string().contains("# next") && editor.to_string().contains("# two"));
        // Edits before the removal are kept.
        let mut editor = Editor::new(text).unwrap();
        editor.set(&["t", "new"], "true").unwrap();
        assert!(editor.remove(&["t", "b"]) && !editor.remove(&["t", "b"]));
        assert!(editor.to_string().contains("new = true") && editor.to_string().contains("# two"));
    }

    #[test]
    fn comments_of_other_parts_stay_when_a_table_is_removed() {
        let text = "# The file.\n\n# one\n[site.a]\nb = 1\n# end of a\n\n# its limits\n[site.a.limits]\nc = 1\n\n# more of \
                    a\n\n# two\n[site.b]\nd = 1\n# end\n";
        for (site, expected) in [
            (
                "a",
                "# The file.\n\n# end of a\n\n# more of a\n\n# two\n[site.b]\nd = 1\n# end\n",
            ),
            (
                "b",
                "# The file.\n\n# one\n[site.a]\nb = 1\n# end of a\n\n# its limits\n[site.a.limits]\nc = 1\n\n# more of \
                 a\n# end\n",
            ),
        ] {
            let mut editor = Editor::new(text).unwrap();
            assert!(editor.remove(&["site", site]));
            let lines = |text: &str| -> Vec<String> {
                let all = text.lines().filter(|line| !line.is_empty());
                all.map(str::to_owned).collect()
            };
            assert_eq!(lines(&editor.to_string()), lines(expected), "{site}");
            assert!(Editor::new(&editor.to_string()).is_ok());
        }
    }
}
