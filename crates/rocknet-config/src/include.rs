//! Reads a configuration and the files it includes into one table. Variables are expanded, and duplicates are refused.

use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::file::{Node, Origin, Table, Value};
use crate::finding::{Code, Finding, Related, Report, Severity};
use crate::glob;
use crate::source::{FileId, MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES, Sources, Span, normalize};
use crate::{syntax, variable};

/// Maximum depth of includes, including the main file. A main file, a file per customer and a file per site need a
/// depth of three.
pub const MAX_INCLUDE_DEPTH: usize = 8;

/// Reader of a configuration, with the files read and the findings reported up to now.
pub(crate) struct Reader<'a> {
    pub env: &'a dyn Environment,
    pub sources: Sources,
    pub report: Report,
}

impl Reader<'_> {
    /// Reads the main file and the files it includes into one table; an empty table if the main file cannot be read.
    pub fn file(&mut self, path: &Path) -> Table {
        let path = normalize(&self.env.current_dir().join(path));
        match self.env.read(&path) {
            Ok(text) => self.text(path, text, &mut Vec::new()),
            Err(e) => {
                self.report.push(Finding {
                    severity: Severity::Error,
                    code: Code::Unreadable,
                    message: format!("cannot read {}: {e}", path.display()),
                    help: Some("correct the path, or create the file; `rocknet serve DIR` needs no file".to_owned()),
                    location: None,
                    related: Vec::new(),
                });
                Table::new(Origin::Header)
            }
        }
    }

    /// Reads a text and the files it includes. `chain`: the files that include this text, outermost first.
    /// The table is empty if the text is too large.
    pub fn text(&mut self, path: PathBuf, text: String, chain: &mut Vec<FileId>) -> Table {
        if text.len() > MAX_FILE_BYTES || !self.sources.has_room(text.len()) {
            let (file, all) = (MAX_FILE_BYTES / (1024 * 1024), MAX_TOTAL_BYTES / (1024 * 1024));
            self.report.push(Finding {
                severity: Severity::Error,
                code: Code::Unreadable,
                message: format!("{} is too large", path.display()),
                help: Some(format!(
                    "the limit is {file} MiB per file, and {all} MiB for all files together"
                )),
                location: None,
                related: Vec::new(),
            });
            return Table::new(Origin::Header);
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let file = self.sources.add(path, text);
        let table = syntax::parse(&self.sources, file, &mut self.report);
        let mut root = Node {
            value: Value::Table(table),
            span: Span::new(file, 0, 0),
        };
        let mut failed = Vec::new();
        root.each_text(&mut |text, span| match variable::expand(text, &folder, self.env) {
            Ok(()) => true,
            Err(e) => {
                failed.push((span, e));
                false
            }
        });
        for (span, e) in failed {
            self.error(Code::Variable, span, e.message, &e.help);
        }
        // `each_text` replaces only strings, so `root` is still a table.
        let Value::Table(mut table) = root.value else {
            return Table::new(Origin::Header);
        };
        chain.push(file);
        if let Some(include) = table.entries.remove("include") {
            for (pattern, span) in self.patterns(&include.node) {
                self.include(&mut table, &folder.join(pattern), span, chain);
            }
        }
        chain.pop();
        table
    }

    /// Returns the patterns of `include`, each with its span.
    fn patterns(&mut self, node: &Node) -> Vec<(String, Span)> {
        let items = match &node.value {
            Value::List(items) => items.as_slice(),
            Value::Broken => &[],
            _ => std::slice::from_ref(node),
        };
        let mut found = Vec::new();
        for item in items {
            match item.as_text() {
                None if matches!(item.value, Value::Broken) => {}
                empty_or_other @ (Some("") | None) => {
                    let noun = empty_or_other.map_or(item.noun(), |_| "an empty string");
                    let message = format!("`include` takes file names, not {noun}");
                    self.error(
                        Code::WrongType,
                        item.span,
                        message,
                        "write include = [\"sites/*.toml\"]",
                    );
                }
                Some(text) => found.push((text.to_owned(), item.span)),
            }
        }
        found
    }

    /// Reads the files that match a pattern and merges them into a table. `span`: span of the pattern.
    fn include(&mut self, into: &mut Table, pattern: &Path, span: Span, chain: &mut Vec<FileId>) {
        let pattern = normalize(pattern);
        let files = if glob::is_pattern(&pattern.to_string_lossy()) {
            // A pattern may match no file, because sites may be added to an empty folder later.
            match self.env.matching(&pattern) {
                Ok(files) => files,
                Err(e) => {
                    let message = format!("cannot search for {}: {e}", pattern.display());
                    return self.error(Code::Include, span, message, "check the folder and its permissions");
                }
            }
        } else {
            vec![pattern]
        };
        for path in files {
            if let Some(before) = self.sources.find(&path) {
                let (message, help) = if chain.contains(&before) {
                    let help = "put the included files into a folder of their own: include = [\"sites/*.toml\"]";
                    (format!("{} includes itself", path.display()), help)
                } else {
                    (format!("{} is included twice", path.display()), "name each file once")
                };
                self.error(Code::Include, span, message, help);
                continue;
            }
            if chain.len() >= MAX_INCLUDE_DEPTH || self.sources.len() >= MAX_FILES {
                let message =
                    format!("includes are more than {MAX_INCLUDE_DEPTH} deep, or more than {MAX_FILES} files");
                return self.error(Code::Include, span, message, "include the files from the main file");
            }
            let text = match self.env.read(&path) {
                Ok(text) => text,
                Err(e) => {
                    let message = format!("cannot read {}: {e}", path.display());
                    self.error(
                        Code::Include,
                        span,
                        message,
                        "the path is relative to the file that includes it",
                    );
                    continue;
                }
            };
            let included = self.text(path, text, chain);
            self.merge(into, included, &mut Vec::new());
        }
    }

    /// Merges the table `from` into the table `into`. A value or a site in two files is an error that names both
    /// positions, because either file could be the wrong one. `path`: keys that lead to the two tables.
    fn merge(&mut self, into: &mut Table, from: Table, path: &mut Vec<String>) {
        for (name, entry) in from.entries {
            let Some(present) = into.entries.get_mut(&name) else {
                into.entries.insert(name, entry);
                continue;
            };
            let there = present.key;
            let whole_site = path.len() == 1 && path[0] == "site";
            match (&mut present.node.value, entry.node.value) {
                (Value::Table(old), Value::Table(new)) if !whole_site => {
                    path.push(name);
                    self.merge(old, new, path);
                    path.pop();
                }
                // The report is full, so the conflict is only counted.
                _ if self.report.omit(Severity::Error) => {}
                _ => {
                    let what = if whole_site {
                        format!("site \"{name}\"")
                    } else {
                        format!("`{name}`")
                    };
                    let related = vec![Related {
                        message: "first defined here".into(),
                        location: self.sources.locate(there),
                    }];
                    let location = Some(self.sources.locate(entry.key));
                    self.report.push(Finding {
                        severity: Severity::Error,
                        code: Code::Conflict,
                        message: format!("{what} is defined in two files"),
                        help: Some("keep it in one of them".into()),
                        location,
                        related,
                    });
                }
            }
        }
    }

    fn error(&mut self, code: Code, span: Span, message: String, help: &str) {
        if self.report.omit(Severity::Error) {
            return;
        }
        let location = Some(self.sources.locate(span));
        let help = Some(help.to_owned());
        self.report.push(Finding {
            severity: Severity::Error,
            code,
            message,
            help,
            location,
            related: Vec::new(),
        });
    }
}
