//! Findings of the check, each with a position and a remedy, and the report that collects them.

use std::fmt::{self, Display};
use std::path::PathBuf;

use serde::Serialize;

/// Maximum number of findings in a report. More findings do not help an operator, and a hostile file must not fill the
/// memory.
pub const MAX_FINDINGS: usize = 200;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The configuration, or a site of it, cannot be used.
    Error,
    /// The configuration can be used, but probably does not do what was intended.
    Warning,
}

/// Code of a finding, for programs; stable, unlike the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A file cannot be read, or is too large.
    Unreadable,
    /// The text is not TOML.
    Syntax,
    /// An included file cannot be read, is included twice or too deep, or includes itself.
    Include,
    /// `${…}` cannot be expanded.
    Variable,
    /// A key that does not exist in this section.
    UnknownKey,
    /// A known key in the wrong section.
    MisplacedKey,
    /// A key or value that only a later version supports, or a keyword of another server without an equivalent.
    NotAvailable,
    /// A value of the wrong type, such as a string in place of a number.
    WrongType,
    /// An invalid value of the right type.
    BadValue,
    /// Two keys or values that exclude each other.
    Conflict,
    /// A missing key, file or folder.
    Missing,
    /// A problem of a certificate, its chain, its key or its OCSP response, or of a file of CA certificates.
    Certificate,
    /// A valid key or value without effect.
    Useless,
    /// A valid key or value that is a security risk.
    Dangerous,
}

/// Position in a file, with an excerpt of the line. The default, with line and column 0, stands for an unknown file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Location {
    /// Path of the file.
    pub file: PathBuf,
    /// Line number, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Width in characters, at least 1; it may extend beyond the excerpt.
    pub width: usize,
    /// Excerpt of the line, truncated if the line is very long, with control characters replaced by spaces.
    pub excerpt: String,
    /// Number of characters of the line before the excerpt.
    #[serde(skip)]
    pub skipped: usize,
}

/// Second position of a finding, such as that of an earlier definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Related {
    /// Label of the position.
    pub message: String,
    /// The position.
    pub location: Location,
}

/// Error or warning about a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Severity.
    pub severity: Severity,
    /// Code, for programs.
    pub code: Code,
    /// Description of the problem.
    pub message: String,
    /// Remedy: the text to write, or the action to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Position of the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Further positions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
}

impl Finding {
    /// Returns true for an error, false for a warning.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Writes the finding for a terminal: message, positions with excerpts, and help.
    fn write(&self, f: &mut fmt::Formatter<'_>, styling: Styling) -> fmt::Result {
        let (word, style) = match self.severity {
            Severity::Error => ("error", RED),
            Severity::Warning => ("warning", YELLOW),
        };
        writeln!(
            f,
            "{}{word}{}: {}",
            styling.on(style),
            styling.off(),
            sanitized(&self.message)
        )?;
        let gutter = (self.location.iter().chain(self.related.iter().map(|r| &r.location)))
            .map(|l| l.line.to_string().len())
            .max()
            .unwrap_or(1);
        if let Some(location) = &self.location {
            location.write(f, styling, style, gutter, "")?;
        }
        for related in &self.related {
            related.location.write(f, styling, CYAN, gutter, &related.message)?;
        }
        if let Some(help) = &self.help {
            for (row, line) in help.lines().enumerate() {
                let lead = if row == 0 { "help:" } else { "     " };
                writeln!(
                    f,
                    "{:gutter$} {}{lead}{} {}",
                    "",
                    styling.on(CYAN),
                    styling.off(),
                    sanitized(line)
                )?;
            }
        }
        Ok(())
    }
}

impl Location {
    /// Writes the position, the excerpt of the line, and carets below it. `gutter` is the width of the column of line
    /// numbers, and `note` follows the carets.
    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        styling: Styling,
        style: &'static str,
        gutter: usize,
        note: &str,
    ) -> fmt::Result {
        let (on, dim, off) = (styling.on(style), styling.on(DIM), styling.off());
        let file = sanitized(&self.file.to_string_lossy());
        writeln!(f, "{:gutter$}{dim}-->{off} {file}:{}:{}", "", self.line, self.column)?;
        writeln!(f, "{:gutter$} {dim}|{off}", "")?;
        writeln!(f, "{dim}{:gutter$} |{off} {}", self.line, self.excerpt)?;
        let before = self.column.saturating_sub(1).saturating_sub(self.skipped);
        let room = self.excerpt.chars().count().saturating_sub(before).max(1);
        let carets = "^".repeat(self.width.min(room));
        let gap = if note.is_empty() { "" } else { " " };
        writeln!(
            f,
            "{:gutter$} {dim}|{off} {:before$}{on}{carets}{gap}{}{off}",
            "",
            "",
            sanitized(note)
        )
    }
}

/// Findings of one check of a configuration. They are sorted by position at the end of the check.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// The findings, at most [`MAX_FINDINGS`].
    pub findings: Vec<Finding>,
    /// Number of further findings, which are not stored.
    pub omitted: usize,
}

impl Report {
    /// Returns the number of errors among the stored findings.
    pub fn errors(&self) -> usize {
        self.findings.iter().filter(|f| f.is_error()).count()
    }

    /// Returns the number of warnings among the stored findings.
    pub fn warnings(&self) -> usize {
        self.findings.len() - self.errors()
    }

    /// Returns the report formatted for a terminal, optionally in colour.
    pub fn display(&self, colour: bool) -> impl Display + '_ {
        ReportDisplay {
            report: self,
            styling: Styling(colour),
        }
    }

    /// Returns the report as JSON, as `rocknet check --json` prints it.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "ok": self.errors() == 0,
            "errors": self.errors(),
            "warnings": self.warnings(),
            "omitted": self.omitted,
            "findings": self.findings,
        })
    }

    /// Returns true if another error would only be counted, not stored.
    pub(crate) fn is_full(&self) -> bool {
        self.findings.len() >= MAX_FINDINGS && self.errors() == self.findings.len()
    }

    /// If the report has no room for a finding, counts the finding and returns true. Callers then skip building its
    /// message and location, because locating a span takes time in proportion to the length of its line.
    pub(crate) fn omit(&mut self, severity: Severity) -> bool {
        let omitted = match severity {
            Severity::Error => self.is_full(),
            Severity::Warning => self.findings.len() >= MAX_FINDINGS,
        };
        self.omitted += usize::from(omitted);
        omitted
    }

    /// Stores a finding, or counts it if the report has no room for it. An error that finds no room replaces the last
    /// warning, which is then counted in its place.
    pub(crate) fn push(&mut self, finding: Finding) {
        if self.findings.len() < MAX_FINDINGS {
            return self.findings.push(finding);
        }
        self.omitted += 1;
        // Errors decide whether the configuration is used.
        if finding.is_error()
            && let Some(warning) = self.findings.iter().rposition(|f| !f.is_error())
        {
            self.findings[warning] = finding;
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display(false).fmt(f)
    }
}

impl std::error::Error for Report {}

struct ReportDisplay<'a> {
    report: &'a Report,
    styling: Styling,
}

impl Display for ReportDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.report.findings {
            finding.write(f, self.styling)?;
            writeln!(f)?;
        }
        let count = |n: usize, noun: &str| match n {
            0 => format!("no {noun}s"),
            1 => format!("1 {noun}"),
            n => format!("{n} {noun}s"),
        };
        write!(
            f,
            "{}, {}",
            count(self.report.errors(), "error"),
            count(self.report.warnings(), "warning")
        )?;
        if self.report.omitted > 0 {
            write!(f, "; {} more not shown", self.report.omitted)?;
        }
        writeln!(f)
    }
}

/// Escape sequences for colours; true if they are written.
#[derive(Clone, Copy)]
struct Styling(bool);

impl Styling {
    /// Returns the escape sequence that begins a style.
    fn on(self, style: &'static str) -> &'static str {
        if self.0 { style } else { "" }
    }

    /// Returns the escape sequence that ends every style.
    fn off(self) -> &'static str {
        if self.0 { "\x1b[0m" } else { "" }
    }
}

// Escape sequences of terminals (SGR).
const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const CYAN: &str = "\x1b[1;36m";
const DIM: &str = "\x1b[2m";

/// Replaces control characters other than newlines, because messages quote values and paths whose escape sequences a
/// terminal would interpret.
fn sanitized(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding() -> Finding {
        Finding {
            severity: Severity::Error,
            code: Code::UnknownKey,
            message: "unknown key `rot\u{1b}[31m`".into(),
            help: Some("did you mean `root`?".into()),
            location: Some(Location {
                file: "r.toml".into(),
                line: 12,
                column: 3,
                width: 3,
                excerpt: "  rot = 1".into(),
                skipped: 0,
            }),
            related: vec![],
        }
    }

    #[test]
    fn findings_show_position_caret_and_help_without_control_characters() {
        let mut report = Report::default();
        report.push(finding());
        let text = report.to_string();
        assert_eq!(
            text,
            "error: unknown key `rot\u{fffd}[31m`\n  --> r.toml:12:3\n   |\n12 |   rot = 1\n   |   ^^^\n   \
             help: did you mean `root`?\n\n1 error, no warnings\n"
        );
        assert!(report.display(true).to_string().contains("\x1b[1;31merror\x1b[0m"));
        let json = report.json();
        assert_eq!(
            (&json["ok"], &json["errors"], &json["warnings"]),
            (&false.into(), &1.into(), &0.into())
        );
        let first = &json["findings"][0];
        assert_eq!(
            (&first["severity"], &first["code"]),
            (&"error".into(), &"unknown-key".into())
        );
        assert_eq!(
            (&first["location"]["file"], &first["location"]["line"]),
            (&"r.toml".into(), &12.into())
        );
    }

    #[test]
    fn findings_beyond_the_bound_are_counted_and_errors_replace_warnings() {
        let mut report = Report::default();
        for _ in 0..MAX_FINDINGS + 7 {
            report.push(finding());
        }
        assert_eq!((report.findings.len(), report.omitted), (MAX_FINDINGS, 7));
        assert_eq!(report.json()["omitted"], 7);

        // An error replaces a warning.
        let warning = Finding {
            severity: Severity::Warning,
            ..finding()
        };
        let mut report = Report {
            findings: vec![warning; MAX_FINDINGS],
            omitted: 0,
        };
        report.push(finding());
        assert_eq!(
            (report.errors(), report.findings.len(), report.omitted),
            (1, MAX_FINDINGS, 1)
        );
    }
}
