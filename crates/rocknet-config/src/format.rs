//! Formatter of `rocknet fmt`: uniform spacing. Comments, order, quotes and, apart from blank lines, the division into
//! lines are unchanged.

use toml_parser::Source;
use toml_parser::parser::{Event, EventKind};

use crate::finding::{Code, Finding, Report, Severity};
use crate::source::{MAX_FILE_BYTES, Sources};
use crate::syntax;

/// Number of spaces by which lines are indented for each enclosing list or inline table.
const INDENT: usize = 4;

/// Formats a configuration uniformly.
///
/// There is one space on each side of `=` and after each comma, and none at the end of a line. Lines are indented only
/// inside lists and inline tables. A header that follows a key has a blank line before it, and there are never two
/// blank lines in a row. Spaces between a value and a comment on the same line are kept. A byte order mark, carriage
/// returns at the end of lines, and a comma before a closing bracket on the same line are removed. Strings are not
/// changed. Formatting is idempotent.
///
/// # Errors
///
/// Returns the syntax errors if the text is not TOML, or one error if it is larger than a file may be.
pub fn format(text: &str) -> Result<String, Report> {
    let mut report = Report::default();
    if text.len() > MAX_FILE_BYTES {
        report.push(Finding {
            severity: Severity::Error,
            code: Code::Unreadable,
            message: format!("the text is larger than {} MiB", MAX_FILE_BYTES / (1024 * 1024)),
            help: Some("split it: include = [\"sites/*.toml\"]".to_owned()),
            location: None,
            related: Vec::new(),
        });
        return Err(report);
    }
    let mut sources = Sources::default();
    let file = sources.add("rocknet.toml".into(), text.to_owned());
    syntax::parse(&sources, file, &mut report);
    if report.errors() > 0 {
        return Err(report);
    }
    let source = Source::new(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut writer = Writer {
        out: String::with_capacity(text.len() + text.len() / 8),
        ..Writer::default()
    };
    for event in syntax::events(source, &mut Vec::new()) {
        writer.handle(&event, source.input());
    }
    Ok(writer.finish())
}

/// Kind of the last line that was not blank.
#[derive(Debug, Default, PartialEq, Eq)]
enum LastLine {
    /// No line has been written.
    #[default]
    Nothing,
    /// Line that begins with a key.
    Entry,
    /// Header of a table.
    Header,
    /// Line with only a comment, outside of lists and inline tables.
    Comment,
}

/// Writer of the formatted text. It receives the events of the parser in the order of the text.
#[derive(Debug, Default)]
struct Writer<'t> {
    out: String,
    /// Enclosing lists and inline tables; true for an inline table.
    open: Vec<bool>,
    /// True if the current line is not empty.
    line_started: bool,
    /// True if the next line needs a blank line before it.
    blank: bool,
    last: LastLine,
    /// True if a comma has been read but not yet written.
    comma: bool,
    /// True if the last token was `{`.
    brace: bool,
    /// True if the last token was `=`.
    equals: bool,
    /// Spaces before the current token. They are written only if the token is a comment.
    spaces: &'t str,
}

impl<'t> Writer<'t> {
    /// Writes the part of the text that belongs to an event. `text`: the whole text.
    fn handle(&mut self, event: &Event, text: &'t str) {
        let raw = text.get(event.span().start()..event.span().end()).unwrap_or("");
        let spaces = std::mem::take(&mut self.spaces);
        match event.kind() {
            EventKind::Whitespace => self.spaces = raw,
            EventKind::Newline => self.newline(),
            EventKind::Comment => self.comment(raw.trim_end(), spaces),
            EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                if self.last == LastLine::Entry {
                    self.blank = true;
                }
                self.put(raw);
                self.last = LastLine::Header;
            }
            EventKind::StdTableClose | EventKind::ArrayTableClose | EventKind::KeySep => self.out.push_str(raw),
            EventKind::SimpleKey => {
                // A part of a key is joined to a dot or a bracket of the same key or header, without a space.
                let joined = self.out.ends_with(['.', '[']) && self.line_started && !self.comma && !self.brace;
                if joined {
                    self.out.push_str(raw);
                } else {
                    self.put(raw);
                    self.last = LastLine::Entry;
                }
            }
            EventKind::KeyValSep => {
                // Inside an inline table, a line may end before or after the `=`.
                if self.line_started {
                    self.out.push(' ');
                } else {
                    self.begin(self.open.len());
                }
                self.out.push('=');
                self.equals = true;
            }
            EventKind::Scalar => self.put(raw),
            EventKind::ValueSep => {
                // Two commas in a row are not TOML, so no earlier comma is pending.
                self.comma = true;
            }
            EventKind::ArrayOpen => {
                self.put("[");
                self.open.push(false);
            }
            EventKind::InlineTableOpen => {
                self.put("{");
                self.open.push(true);
                self.brace = true;
            }
            EventKind::ArrayClose => self.close("]"),
            EventKind::InlineTableClose => self.close("}"),
            // `format` has refused a text with errors.
            EventKind::Error => {}
        }
    }

    /// Writes the next token of a line, with the blank line, spaces or comma before it.
    fn put(&mut self, text: &str) {
        if self.line_started {
            if self.comma {
                self.out.push_str(", ");
            } else if self.brace || self.equals {
                self.out.push(' ');
            }
        } else {
            self.begin(self.open.len());
            // `newline` writes the comma of an earlier line, so this one begins the current line.
            if self.comma {
                self.out.push_str(", ");
            }
        }
        self.comma = false;
        self.brace = false;
        self.equals = false;
        self.out.push_str(text);
    }

    /// Begins a line: writes the blank line before it, if one is needed, and the indentation.
    fn begin(&mut self, depth: usize) {
        if self.blank && !self.out.is_empty() {
            self.out.push('\n');
        }
        self.blank = false;
        self.out.extend(std::iter::repeat_n(' ', depth * INDENT));
        self.line_started = true;
    }

    /// Ends the current line. A line without text becomes a blank line before the next line with text.
    fn newline(&mut self) {
        if self.comma {
            if !self.line_started {
                self.begin(self.open.len());
            }
            self.out.push(',');
            self.comma = false;
        }
        self.brace = false;
        self.equals = false;
        if self.line_started {
            self.out.push('\n');
        } else {
            self.blank = true;
        }
        self.line_started = false;
    }

    /// Writes a comment. `spaces`: the spaces before it in the original text.
    fn comment(&mut self, text: &str, spaces: &str) {
        if self.line_started {
            if self.comma {
                self.out.push(',');
                self.comma = false;
            }
            self.brace = false;
            self.equals = false;
            // The operator may have aligned the comments of several lines.
            self.out.push_str(if spaces.is_empty() { " " } else { spaces });
        } else {
            if self.comma {
                self.begin(self.open.len());
                self.out.push_str(", ");
                self.comma = false;
            } else {
                self.begin(self.open.len());
            }
            if self.open.is_empty() {
                self.last = LastLine::Comment;
            }
        }
        self.out.push_str(text);
    }

    /// Closes the innermost list or inline table. `bracket`: its closing bracket.
    fn close(&mut self, bracket: &str) {
        let is_table = self.open.pop().unwrap_or(false);
        // `newline` writes a comma at the end of a line; a trailing comma before a bracket is dropped.
        self.comma = false;
        if !self.line_started {
            // There is no blank line before a closing bracket.
            self.blank = false;
            self.begin(self.open.len());
        } else if is_table && !self.brace {
            self.out.push(' ');
        }
        self.brace = false;
        self.out.push_str(bracket);
    }

    fn finish(mut self) -> String {
        if self.line_started {
            self.out.push('\n');
        }
        self.out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::file::{Node, Table, Value};

    #[test]
    fn spacing_is_uniform_and_everything_else_is_kept() {
        let rows = [
            ("", ""),
            ("\n\n\n", ""),
            ("a=1", "a = 1\n"),
            ("\u{feff}  a   =\t1  \r\n", "a = 1\n"),
            ("a=1\n\n\n\nb=2", "a = 1\n\nb = 2\n"),
            ("a=1\n[ b . \"c d\" ]\nx='y'", "a = 1\n\n[b.\"c d\"]\nx = 'y'\n"),
            ("[a]\n[b]", "[a]\n[b]\n"),
            ("# c\n[a]", "# c\n[a]\n"),
            ("a=1#x", "a = 1 #x\n"),
            ("a=1     # x  \nbb=2    # y", "a = 1     # x\nbb = 2    # y\n"),
            ("l=[1,2,3]", "l = [1, 2, 3]\n"),
            ("l=[ 1 ,2, ]", "l = [1, 2]\n"),
            ("l=[\n1,# one\n\n\n  2\n]", "l = [\n    1, # one\n\n    2\n]\n"),
            ("l=[\n[1,\n2],\n\n]", "l = [\n    [1,\n        2],\n]\n"),
            ("l=[]", "l = []\n"),
            ("t={}", "t = {}\n"),
            ("t={a=1,b={c=2}}", "t = { a = 1, b = { c = 2 } }\n"),
            ("t={ }", "t = {}\n"),
            ("l=[{a=1},{b=2}]", "l = [{ a = 1 }, { b = 2 }]\n"),
            ("a . b=1", "a.b = 1\n"),
            ("[[ a ]]\nb=1", "[[a]]\nb = 1\n"),
            ("s=\"\"\"\n a \n\n\n b\"\"\"", "s = \"\"\"\n a \n\n\n b\"\"\"\n"),
            ("l=[1\n,2\n]", "l = [1\n    , 2\n]\n"),
            ("t={a=#c\n1,b\n=2}", "t = { a = #c\n    1, b\n    = 2 }\n"),
            ("t={a.b=[1]}", "t = { a.b = [1] }\n"),
        ];
        for (text, want) in rows {
            let got = format(text).unwrap();
            assert_eq!(got, want, "{text:?}");
            assert_eq!(format(&got).unwrap(), want, "twice: {text:?}");
        }
        assert_eq!(format("a = ").unwrap_err().errors(), 1);
    }

    /// Renders the content of a table without its spans, for comparison.
    fn meaning(table: &Table) -> String {
        let node = |node: &Node| match &node.value {
            Value::Table(table) => meaning(table),
            Value::List(items) => {
                let items: Vec<_> = items.iter().map(meaning_of).collect();
                format!("[{}]", items.join(","))
            }
            value => format!("{value:?}"),
        };
        let entries: Vec<_> = table
            .entries
            .iter()
            .map(|(key, e)| format!("{key:?}={}", node(&e.node)))
            .collect();
        format!("{{{}}}", entries.join(","))
    }

    /// Renders a value in the form of a table that contains only this value.
    fn meaning_of(node: &Node) -> String {
        let mut table = Table::new(crate::file::Origin::Header);
        table.entries.insert(
            String::new(),
            crate::file::Entry {
                key: node.span,
                node: node.clone(),
            },
        );
        meaning(&table)
    }

    /// Returns the rendered content of a text, and the number of its syntax errors.
    fn parse(text: &str) -> (String, usize) {
        let mut sources = Sources::default();
        let file = sources.add("x".into(), text.to_owned());
        let mut report = Report::default();
        let table = syntax::parse(&sources, file, &mut report);
        (meaning(&table), report.errors())
    }

    /// Generates texts from parts that are often valid TOML together.
    fn toml() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => "[a-d]",
            4 => Just("=".to_owned()),
            3 => "[0-9]",
            3 => Just("\n".to_owned()),
            2 => Just("\n\n".to_owned()),
            2 => Just(" ".to_owned()),
            1 => Just("\t".to_owned()),
            1 => Just("\r\n".to_owned()),
            1 => Just("# c \n".to_owned()),
            2 => Just("[".to_owned()),
            2 => Just("]".to_owned()),
            1 => Just("{".to_owned()),
            1 => Just("}".to_owned()),
            2 => Just(",".to_owned()),
            1 => Just(".".to_owned()),
            1 => Just("\"s # \\n\"".to_owned()),
            1 => Just("'l'".to_owned()),
            1 => Just("\"\"\"m\n  n\"\"\"".to_owned()),
            3 => "[a-z]{3,6} *= *[0-9]\n",
            2 => "\\[ ?[a-z]{3,6} ?\\]\n",
            2 => "[a-z]{3,6}=\\[( ?[0-9] ?,\n?){0,4}#?\n?\\]\n",
            2 => "[a-z]{3,6}=\\{ ?x ?= ?1( ?,y=\\[\\])? ?\\} *#z\n",
        ];
        proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn formatting_is_idempotent_and_keeps_the_meaning(text in toml()) {
            if let Ok(once) = format(&text) {
                prop_assert_eq!(parse(&once), parse(&text));
                prop_assert_eq!(&format(&once).unwrap(), &once);
            }
        }

        #[test]
        fn both_parsers_agree_on_what_is_toml(text in toml()) {
            // Result of RockNet's parser, and of the parser of `toml_edit`.
            let ours = parse(&text).1 == 0;
            let theirs = text.parse::<toml_edit::DocumentMut>().is_ok();
            prop_assert_eq!(ours, theirs, "{:?}", text);
        }
    }
}
