//! Edits of a configuration file. An edit keeps the comments, order and spacing of the rest of the file.

mod fields;
mod positions;
mod removal;
mod sites;

use std::fmt;

use toml_edit::{DocumentMut, Item, Key, Table, TableLike, Value};

use crate::finding::{Code, Finding, Report, Severity};
use crate::source::Sources;
use crate::syntax::{self, MAX_KEY_PARTS};

pub use fields::{FieldValue, samples};
pub use positions::KeyPositions;

/// Editor of a TOML text. The result is valid TOML; [`crate::check_text`] checks it as a configuration.
#[derive(Debug, Clone)]
pub struct Editor {
    document: DocumentMut,
}

/// Error of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditError {
    /// The path is empty or too long.
    BadPath,
    /// This part of the path is a value, not a table.
    NotATable(String),
    /// The path ends at this table, not at a value that can be replaced.
    IsATable(String),
    /// This text is not a dotted key.
    NotAKey(String),
    /// This text is not a TOML value.
    NotAValue(String),
    /// The configuration already has a site with this name.
    SiteExists(String),
    /// This value cannot be edited as a field of a form.
    NotAField(String),
    /// The table at this key has a setting that excludes the new one: with `auth = { signed = true }`, a file of users
    /// cannot be added to `auth`.
    Excluded(String),
    /// This line is not an entry of a map.
    NotAnEntry(String),
    /// Two lines of a map have this name.
    Repeated(String),
    /// The text has no site with this name.
    NoSite(String),
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::BadPath => write!(f, "the path is empty or has more than {MAX_KEY_PARTS} parts"),
            EditError::NotATable(key) => write!(f, "`{key}` is not a table and cannot contain keys"),
            EditError::IsATable(key) => write!(f, "`{key}` is a table; name a key in it, or remove it first"),
            EditError::NotAKey(text) => {
                write!(
                    f,
                    "{text} is not a key; names with dots need quotes: site.\"example.com\".root"
                )
            }
            EditError::NotAValue(text) => write!(f, "{text} is not a TOML value; strings need quotes"),
            EditError::SiteExists(name) => write!(f, "site \"{name}\" already exists"),
            EditError::NotAField(value) => write!(
                f,
                "the value cannot be edited in a form field; edit it as text: {value}"
            ),
            EditError::Excluded(key) => write!(f, "`{key}` has a setting that excludes the new one; remove it first"),
            EditError::NotAnEntry(line) => write!(f, "`{line}` is not `name = value`"),
            EditError::Repeated(name) => write!(f, "two lines have the name `{name}`; keep only one of them"),
            EditError::NoSite(name) => write!(f, "there is no site \"{name}\""),
        }
    }
}

impl std::error::Error for EditError {}

/// Returns a string as a quoted TOML value.
pub fn text(value: &str) -> String {
    Value::from(value).to_string()
}

/// Splits a dotted key, such as `site."example.com".root`, into its parts.
///
/// # Errors
///
/// [`EditError::NotAKey`] if the text is not a dotted key of TOML.
pub fn key_path(text: &str) -> Result<Vec<String>, EditError> {
    let parts = Key::parse(text.trim()).map_err(|_| EditError::NotAKey(text.to_owned()))?;
    Ok(parts.iter().map(|key| key.get().to_owned()).collect())
}

/// Returns true if a text is a TOML value.
pub fn is_value(text: &str) -> bool {
    text.trim().parse::<Value>().is_ok()
}

impl Editor {
    /// Creates an editor for a text.
    ///
    /// # Errors
    ///
    /// Returns the syntax errors if the text is not TOML.
    pub fn new(text: &str) -> Result<Editor, Report> {
        let mut report = Report::default();
        let mut sources = Sources::default();
        // RockNet's own parser runs first, because it bounds the depth of tables and thereby the recursion of
        // `toml_edit`.
        let file = sources.add("rocknet.toml".into(), text.to_owned());
        syntax::parse(&sources, file, &mut report);
        if report.errors() > 0 {
            return Err(report);
        }
        match text.parse::<DocumentMut>() {
            Ok(document) => Ok(Editor { document }),
            Err(e) => {
                report.push(Finding {
                    severity: Severity::Error,
                    code: Code::Syntax,
                    message: format!("not TOML: {}", e.message()),
                    help: None,
                    location: None,
                    related: Vec::new(),
                });
                Err(report)
            }
        }
    }

    /// Sets a key, such as `["site", "example.com", "root"]`, to a value in TOML. Missing tables are created.
    ///
    /// # Errors
    ///
    /// Fails without a change if the path does not lead to a key, or if the text is not a TOML value.
    pub fn set(&mut self, path: &[&str], value: &str) -> Result<(), EditError> {
        let (key, parents) = split(path)?;
        let mut new: Value = value
            .trim()
            .parse()
            .map_err(|_| EditError::NotAValue(value.to_owned()))?;
        let (table, inline) = parent(self.document.as_table_mut(), parents)?;
        match table.get_mut(key) {
            Some(Item::Value(old)) => {
                // The decoration contains the spaces and the comment around the value.
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            Some(item) if !item.is_none() => return Err(EditError::IsATable(key.to_owned())),
            _ => {
                if inline {
                    // The space before `}` belongs to the last value, so it is moved to the new value.
                    let last = table.iter_mut().last().and_then(|(_, item)| item.as_value_mut());
                    if let Some(last) = last {
                        let end = last.decor().suffix().and_then(|s| s.as_str()).unwrap_or("").to_owned();
                        last.decor_mut().set_suffix("");
                        new.decor_mut().set_prefix(" ");
                        new.decor_mut().set_suffix(end);
                    }
                }
                table.insert(key, Item::Value(new));
            }
        }
        Ok(())
    }

    /// Removes a key or a whole table. Returns false if it does not exist. The comments above a key stay. A table is
    /// removed with the comment directly above its header; other comments stay.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        // `toml_edit` would remove the comments above a key together with it, so such a key is removed from the text.
        if self.remove_below_comments(path) {
            return true;
        }
        let Some((key, parents)) = path.split_last() else {
            return false;
        };
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        for part in parents {
            let Some(inner) = table.get_mut(part).and_then(Item::as_table_like_mut) else {
                return false;
            };
            table = inner;
        }
        let Some(removed) = table.remove(key) else {
            return false;
        };
        self.keep_comments(&removed);
        true
    }

    /// Adds a site with this root folder, after the other sites.
    ///
    /// # Errors
    ///
    /// Fails if the site exists, or if `site` is not a table.
    pub fn add_site(&mut self, name: &str, root: &str) -> Result<(), EditError> {
        let exists = |item: &Item| item.as_table_like().is_some_and(|sites| sites.contains_key(name));
        if self.document.get("site").is_some_and(exists) {
            return Err(EditError::SiteExists(name.to_owned()));
        }
        self.set(&["site", name, "root"], &text(root))
    }

    /// Returns the number of leading parts of a path that exist.
    pub fn depth(&self, path: &[&str]) -> usize {
        let mut item = self.document.as_item();
        for (depth, part) in path.iter().enumerate() {
            match item.as_table_like().and_then(|table| table.get(part)) {
                Some(inner) => item = inner,
                None => return depth,
            }
        }
        path.len()
    }

    /// Returns the value of a key as TOML; `None` if the key does not exist, or if it is a table that is written with a
    /// header (`[a.b]`) or with dotted keys, not as a value.
    pub fn value(&self, path: &[&str]) -> Option<String> {
        let mut item = self.document.as_item();
        for part in path {
            item = item.as_table_like()?.get(part)?;
        }
        Some(item.as_value()?.clone().decorated("", "").to_string())
    }
}

impl fmt::Display for Editor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document.fmt(f)
    }
}

/// Splits a path into its last part, the key, and the parts before it.
fn split<'p>(path: &'p [&'p str]) -> Result<(&'p str, &'p [&'p str]), EditError> {
    match path.split_last() {
        Some((key, parents)) if parents.len() < MAX_KEY_PARTS => Ok((key, parents)),
        _ => Err(EditError::BadPath),
    }
}

/// Returns the table at a path, and true if the table is inline. Creates missing tables. Fails if a part of the path is
/// a value.
fn parent<'t>(root: &'t mut Table, path: &[&str]) -> Result<(&'t mut dyn TableLike, bool), EditError> {
    let mut table: &mut dyn TableLike = root;
    let mut inline = false;
    for (at, part) in path.iter().enumerate() {
        let last = at + 1 == path.len();
        if !table.contains_key(part) {
            let item = if inline {
                Item::Value(Value::InlineTable(toml_edit::InlineTable::new()))
            } else {
                let mut new = Table::new();
                // Only the innermost table gets a header: `[site."example.com"]` needs no `[site]` before it.
                new.set_implicit(!last);
                Item::Table(new)
            };
            table.insert(part, item);
        }
        let item = table
            .get_mut(part)
            .ok_or_else(|| EditError::NotATable((*part).to_owned()))?;
        inline = item.is_inline_table();
        table = item
            .as_table_like_mut()
            .ok_or_else(|| EditError::NotATable((*part).to_owned()))?;
    }
    Ok((table, inline))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# mine\n[server]\nworkers = 2   # few\n\n[site.\"a.test\"] # first\nroot = '/a'\nheaders = { A = \
                        \"1\" }\n# end\n";

    #[test]
    fn edits_keep_everything_else() {
        // (path, new value or `None` to remove the key, replaced part of the text, new part)
        let rows: &[(&[&str], Option<&str>, &str, &str)] = &[
            (
                &["server", "workers"],
                Some("4"),
                "workers = 2   # few",
                "workers = 4   # few",
            ),
            (
                &["server", "mode"],
                Some("\"dev\""),
                "# few\n",
                "# few\nmode = \"dev\"\n",
            ),
            (&["site", "a.test", "root"], Some("\"/b\""), "'/a'", "\"/b\""),
            (
                &["site", "a.test", "headers", "A"],
                Some("\"2\""),
                "A = \"1\"",
                "A = \"2\"",
            ),
            (
                &["site", "a.test", "headers", "B"],
                Some("\"2\""),
                "\"1\" }",
                "\"1\", B = \"2\" }",
            ),
            (&["server", "workers"], None, "workers = 2   # few\n", ""),
            (&["site", "a.test", "headers"], None, "headers = { A = \"1\" }\n", ""),
            (
                &["log", "level"],
                Some("\"warn\""),
                "# end\n",
                "\n[log]\nlevel = \"warn\"\n# end\n",
            ),
        ];
        for (path, value, from, to) in rows {
            let mut editor = Editor::new(FILE).unwrap();
            match value {
                Some(value) => editor.set(path, value).unwrap(),
                None => assert!(editor.remove(path), "{path:?}"),
            }
            assert_eq!(editor.to_string(), FILE.replace(from, to), "{path:?}");
        }
        assert_eq!(Editor::new(FILE).unwrap().to_string(), FILE);
    }

    #[test]
    fn an_added_site_is_part_of_the_configuration() {
        let mut editor = Editor::new("").unwrap();
        editor.add_site("b.test", "C:\\www \"x\"").unwrap();
        assert_eq!(
            editor.value(&["site", "b.test", "root"]).as_deref(),
            Some("'C:\\www \"x\"'")
        );
        assert_eq!(editor.to_string(), "[site.\"b.test\"]\nroot = 'C:\\www \"x\"'\n");
        assert_eq!(
            editor.add_site("b.test", "/x"),
            Err(EditError::SiteExists("b.test".into()))
        );
        editor.add_site("c.test", "/c").unwrap();
        let environment = crate::environment::MemoryEnvironment {
            any_directory: true,
            ..Default::default()
        };
        let loaded = crate::parse(&editor.to_string(), std::path::Path::new("/r.toml"), &environment).unwrap();
        let names: Vec<_> = loaded.config.sites.iter().map(|site| site.name.as_str()).collect();
        assert_eq!(names, ["b.test", "c.test"]);
    }

    #[test]
    fn dotted_keys_are_split() {
        for (text, expected) in [
            ("server.workers", &["server", "workers"][..]),
            ("site.\"a.test\".root", &["site", "a.test", "root"]),
            (" site . ':80' ", &["site", ":80"]),
        ] {
            assert_eq!(key_path(text).unwrap(), expected);
        }
        for text in ["", ".", "a..b", "a b", "a.\"b"] {
            assert_eq!(key_path(text), Err(EditError::NotAKey(text.into())), "{text:?}");
        }
    }

    #[test]
    fn invalid_edits_are_refused() {
        let mut editor = Editor::new(FILE).unwrap();
        let rows: &[(&[&str], &str, EditError)] = &[
            (&[], "1", EditError::BadPath),
            (&["x"; MAX_KEY_PARTS + 1], "1", EditError::BadPath),
            (&["server"], "1", EditError::IsATable("server".into())),
            (&["site", "a.test"], "1", EditError::IsATable("a.test".into())),
            (&["server", "workers", "x"], "1", EditError::NotATable("workers".into())),
            (&["server", "user"], "www-data", EditError::NotAValue("www-data".into())),
        ];
        for (path, value, want) in rows {
            assert_eq!(editor.set(path, value).as_ref(), Err(want), "{path:?}");
        }
        assert_eq!(editor.to_string(), FILE);
        assert!(!editor.remove(&["no", "such"]));
        assert!(Editor::new("a = ").is_err());
    }
}
