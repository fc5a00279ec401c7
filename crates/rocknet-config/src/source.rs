//! Source files of a configuration, and the translation of byte offsets to lines and columns.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use crate::finding::Location;

/// Maximum size of a configuration file in bytes. Fifty thousand sites of two lines each need less than a quarter of
/// this size, and offsets fit in 32 bits.
pub const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;

/// Maximum number of files in one configuration: enough for one file per site at large hosting providers.
pub const MAX_FILES: usize = 65_536;

/// Maximum size of all files together. It is enough for ten thousand large sites, and small enough that a reload can
/// hold the texts in memory.
pub const MAX_TOTAL_BYTES: usize = 4 * MAX_FILE_BYTES;

/// Maximum length of an excerpt of a line in a finding, which fits beside the line number on a wide terminal.
const MAX_EXCERPT_CHARS: usize = 140;

/// Identifies a file of [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId(u32);

/// Range of bytes in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub file: FileId,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Creates a span. An `end` before `start` is replaced by `start`.
    pub fn new(file: FileId, start: usize, end: usize) -> Span {
        // MAX_FILE_BYTES keeps both offsets below 2^32. Saturation covers callers that do not check the size.
        let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Span {
            file,
            start: narrow(start),
            end: narrow(end.max(start)),
        }
    }

    /// Returns the span from the start of this span to the end of a later one in the same file.
    pub fn to(self, later: Span) -> Span {
        Span {
            file: self.file,
            start: self.start,
            end: later.end.max(self.end),
        }
    }
}

/// File with its text and the positions of its lines.
#[derive(Debug)]
struct SourceFile {
    path: PathBuf,
    text: String,
    /// Offset of the first byte of each line.
    lines: Vec<u32>,
}

/// Source files of one configuration, in reading order.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    files: Vec<SourceFile>,
    by_path: HashMap<PathBuf, FileId>,
    /// Size of all texts together.
    bytes: usize,
}

impl Sources {
    /// Adds a file with its text.
    pub fn add(&mut self, path: PathBuf, text: String) -> FileId {
        let mut lines = vec![0];
        lines.extend(
            text.bytes()
                .enumerate()
                .filter(|(_, b)| *b == b'\n')
                .map(|(at, _)| at as u32 + 1),
        );
        let file = FileId(self.files.len() as u32);
        self.bytes += text.len();
        self.by_path.insert(path.clone(), file);
        self.files.push(SourceFile { path, text, lines });
        file
    }

    /// Returns true if a text of this many bytes can be added within [`MAX_TOTAL_BYTES`].
    pub fn has_room(&self, bytes: usize) -> bool {
        self.bytes.saturating_add(bytes) <= MAX_TOTAL_BYTES
    }

    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    pub fn text(&self, file: FileId) -> &str {
        self.files.get(file.0 as usize).map_or("", |f| &f.text)
    }

    pub fn path(&self, file: FileId) -> &Path {
        self.files.get(file.0 as usize).map_or(Path::new(""), |f| &f.path)
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|f| f.path.clone()).collect()
    }

    /// Returns the file with this path if it has been read.
    pub fn find(&self, path: &Path) -> Option<FileId> {
        self.by_path.get(path).copied()
    }

    /// Returns the number of files that were read before the file with this path; `None` if that file was not read.
    pub fn order(&self, path: &Path) -> Option<u32> {
        self.find(path).map(|file| file.0)
    }

    /// Returns the text of a span.
    pub fn slice(&self, span: Span) -> &str {
        self.text(span.file)
            .get(span.start as usize..span.end as usize)
            .unwrap_or("")
    }

    /// Returns the line number of a span, counted from 1.
    pub fn line(&self, span: Span) -> usize {
        let Some(file) = self.files.get(span.file.0 as usize) else {
            return 1;
        };
        file.lines.partition_point(|start| *start <= span.start).max(1)
    }

    /// Returns the position and excerpt of a span for a message. The result does not borrow from the sources.
    pub fn locate(&self, span: Span) -> Location {
        let line = self.line(span);
        let Some(file) = self.files.get(span.file.0 as usize) else {
            return Location::default();
        };
        let start = file.lines.get(line - 1).copied().unwrap_or(0) as usize;
        let content = file.text.get(start..).unwrap_or("");
        let content = content.split('\n').next().unwrap_or("").trim_end_matches('\r');
        let chars_before = |offset: u32| {
            let mut bytes = (offset as usize).saturating_sub(start).min(content.len());
            while !content.is_char_boundary(bytes) {
                bytes += 1;
            }
            content[..bytes].chars().count()
        };
        let column = chars_before(span.start);
        let width = chars_before(span.end).saturating_sub(column).max(1);
        // The excerpt begins at the start of the line if the span ends within the first 140 characters. Of a span
        // longer than 70 characters (half an excerpt), only the first 70 have to be there. Otherwise, the excerpt
        // begins 35 characters (a quarter of an excerpt) before the span.
        let skipped = if column + width.min(MAX_EXCERPT_CHARS / 2) > MAX_EXCERPT_CHARS {
            column - MAX_EXCERPT_CHARS / 4
        } else {
            0
        };
        // Control characters could be interpreted by a terminal, and a tab would misplace the caret.
        let excerpt: String = content
            .chars()
            .skip(skipped)
            .take(MAX_EXCERPT_CHARS)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        Location {
            file: file.path.clone(),
            line,
            column: column + 1,
            width,
            excerpt: excerpt.trim_end().to_owned(),
            skipped,
        }
    }
}

/// Returns a path without `.`, and without `..` after a folder name or the root, so that different spellings of a path
/// are equal. Symbolic links are not resolved.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(cleaned.components().next_back(), Some(Component::Normal(_))) => {
                cleaned.pop();
            }
            Component::ParentDir if matches!(cleaned.components().next_back(), Some(Component::RootDir)) => {}
            part => cleaned.push(part),
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_become_lines_and_columns() {
        let mut sources = Sources::default();
        let file = sources.add("a.toml".into(), "eins = 1\r\nzwölf = 12\n\tx = 3".into());
        // (text, line, column, width, excerpt)
        let rows = [
            ("eins", 1, 1, 4, "eins = 1"),
            ("zwölf", 2, 1, 5, "zwölf = 12"),
            ("12", 2, 9, 2, "zwölf = 12"),
            ("x = 3", 3, 2, 5, " x = 3"),
        ];
        for (what, line, column, width, excerpt) in rows {
            let start = sources.text(file).find(what).unwrap();
            let got = sources.locate(Span::new(file, start, start + what.len()));
            assert_eq!(
                (got.line, got.column, got.width, got.excerpt.as_str()),
                (line, column, width, excerpt),
                "{what}"
            );
        }
        let end = sources.text(file).len();
        assert_eq!(sources.locate(Span::new(file, end, end)).line, 3);
    }

    #[test]
    fn all_files_together_are_bounded() {
        let mut sources = Sources::default();
        sources.add(PathBuf::from("a.toml"), "x".repeat(1000));
        assert!(sources.has_room(MAX_TOTAL_BYTES - 1000));
        assert!(!sources.has_room(MAX_TOTAL_BYTES - 999) && !sources.has_room(usize::MAX));
    }

    #[test]
    fn long_lines_are_cut_around_the_span() {
        let mut sources = Sources::default();
        let text = format!("a = \"{}\" b", "x".repeat(5000));
        let at = text.len() - 1;
        let file = sources.add("a.toml".into(), text);
        let got = sources.locate(Span::new(file, at, at + 1));
        assert!(got.excerpt.chars().count() <= MAX_EXCERPT_CHARS);
        assert_eq!(got.excerpt.chars().nth(got.column - 1 - got.skipped), Some('b'));
    }
}
