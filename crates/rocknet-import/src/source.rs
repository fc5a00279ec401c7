//! Files of a configuration, and the positions of their lines.
//!
//! The lines of all files are numbered consecutively, in the order in which the files were read. Therefore a line
//! number alone identifies the place of a directive.

/// Files of a configuration in the order in which they were read.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceMap {
    files: Vec<SourceFile>,
}

#[derive(Debug, Clone)]
struct SourceFile {
    name: String,
    /// Number of lines of the files before it.
    offset: usize,
    lines: usize,
}

impl SourceMap {
    /// Adds a file. Returns the number of lines before it, which the caller adds to its line numbers.
    pub fn add(&mut self, name: impl Into<String>, text: &str) -> usize {
        let offset = self.files.last().map_or(0, |last| last.offset + last.lines);
        self.files.push(SourceFile {
            name: name.into(),
            offset,
            // `lines` does not count the empty line after a newline at the end of the text, at which an error can be.
            lines: text.lines().count() + 1,
        });
        offset
    }

    /// Returns the name of the file of a line, and the number of the line in it. `line`: its number among the lines of
    /// all files. Without files, the name is empty.
    pub fn position(&self, line: usize) -> (&str, usize) {
        // Line 0 stands for no line. It belongs to the first file.
        let file = self.files.iter().rev().find(|file| file.offset < line.max(1));
        file.map_or(("", line), |file| (file.name.as_str(), line - file.offset))
    }

    /// Returns the place of a line for messages: `line 5`, or `FILE:5` if there are several files.
    pub fn place(&self, line: usize) -> String {
        match (self.position(line), self.files.len()) {
            ((_, line), 0 | 1) => format!("line {line}"),
            ((name, line), _) => format!("{name}:{line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_belong_to_files() {
        let mut sources = SourceMap::default();
        assert_eq!(sources.position(3), ("", 3));
        assert_eq!((sources.add("a", "1\n2\n"), sources.place(2)), (0, "line 2".to_owned()));
        assert_eq!((sources.add("b", ""), sources.add("c", "x")), (3, 4));
        for (line, file, expected) in [(0, "a", 0), (1, "a", 1), (3, "a", 3), (4, "b", 1), (5, "c", 1)] {
            assert_eq!(sources.position(line), (file, expected));
        }
        assert_eq!(sources.place(5), "c:1");
    }
}
