//! Messages about the configuration file: its text, checks, edits and earlier versions.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::explanation::ConfigPosition;
use crate::query;
use crate::text;

/// Maximum size in bytes of a configuration file that programs can replace or edit. Larger ones are edited by hand.
pub const MAX_TEXT: usize = 256 * 1024;

/// Maximum number of edits in a request. Forms and programs need fewer at a time, and each edit is looked up in each
/// file of the configuration.
pub const MAX_EDITS: usize = 1000;

/// File of the configuration that is queried.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigFileName {
    /// Path of the main file, or of a file that it includes, relative to the folder of the main file; `None`: the main
    /// file.
    pub file: Option<PathBuf>,
}

impl ConfigFileName {
    /// Parses the query of a request: `file=PATH`, or nothing.
    ///
    /// # Errors
    ///
    /// Returns a message for the client if the query has another key, or an empty or second `file`.
    pub fn from_query(query: &[u8]) -> Result<ConfigFileName, String> {
        let mut file = None;
        for (name, value) in form_urlencoded::parse(query) {
            match &*name {
                "file" if file.is_none() && !value.is_empty() => file = Some(PathBuf::from(value.into_owned())),
                _ => return Err(query::invalid(&name)),
            }
        }
        Ok(ConfigFileName { file })
    }

    /// Returns the query of the request; `None` if it has none.
    pub fn query(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        let mut query = form_urlencoded::Serializer::new(String::new());
        Some(query.append_pair("file", &file.to_string_lossy()).finish())
    }
}

/// A file of the configuration of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigText {
    /// Absolute path of the file.
    pub file: PathBuf,
    /// Paths of all files of the configuration: the main file, then those that it includes, in reading order.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// Text of the file, without the files that it includes.
    pub text: String,
    /// Revision of the text. Texts that differ have different revisions.
    pub revision: String,
    /// True if the server has loaded exactly this text. False after an edit by another program, until the next reload.
    pub is_loaded: bool,
}

/// Files of a configuration as they are on disk, compared with what the server has loaded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ConfigState {
    /// Absolute path of the main file.
    pub file: PathBuf,
    /// True if the server has loaded exactly the present texts of the files.
    pub is_loaded: bool,
    /// Paths of the files whose present text is not loaded: changed files, new ones, and those that are missing now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_loaded: Vec<PathBuf>,
    /// Names of the sites in the files that the server has not loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Names of the sites of the server that are no longer in the files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// Positions of the errors that keep the present texts from being loaded. Their messages are left out, because they
    /// may quote values. Empty if the texts are loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ConfigPosition>,
    /// Reason why the main file cannot be read, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// Text to check as the configuration of a server. The check changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Text of the configuration file. Relative paths in it are relative to the folder of the server's file.
    pub text: String,
    /// File of the configuration whose text it would replace; `None`: the main file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checked {
    /// True if the server would accept the text. Warnings do not prevent that.
    pub is_valid: bool,
    /// Errors and warnings, in the order of the text.
    pub findings: Vec<Finding>,
}

/// An error or a warning about a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// True for an error, false for a warning.
    pub is_error: bool,
    /// Kind of the finding, such as `unknown-key`.
    pub code: String,
    /// Description of the problem.
    pub message: String,
    /// Remedy: the text to write, or the action to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Path of the file; `None` if the finding has no position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Line, counted from 1; 0 without a position.
    #[serde(default)]
    pub line: usize,
    /// Column in characters, counted from 1; 0 without a position.
    #[serde(default)]
    pub column: usize,
    /// Path of the key in the file, such as `["site", "example.com", "root"]`. Empty if the finding has no position, or
    /// if its file is not the one that the request checks or changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<String>,
}

impl Finding {
    /// Creates a warning without a position.
    pub fn warning(code: &str, message: impl Into<String>) -> Finding {
        Finding {
            is_error: false,
            code: code.to_owned(),
            message: message.into(),
            help: None,
            file: None,
            line: 0,
            column: 0,
            key: Vec::new(),
        }
    }
}

/// Writes one line without a newline: the position, the message and the remedy.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) if self.line > 0 => write!(f, "{}:{}: ", file.display(), self.line)?,
            _ => {}
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// New text of the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// New text.
    pub text: String,
    /// Revision of the text that it replaces. If the file has another revision, it stays as it is.
    pub revision: String,
    /// File of the configuration; `None`: the main file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// Edits of a file of the configuration, which are applied together or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Edits {
    /// Edits in the order in which they are applied: 1 to 1000.
    pub edits: Vec<Edit>,
    /// Revision of the text that they apply to; `None`: the edits apply to any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// File of the configuration; `None`: the file that defines the keys, or the main file for new keys. Edits of
    /// several files need a request for each file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// True to create `file`, with a new site. The file must not exist, its folder must exist, and `include` of a
    /// file of the configuration must match it. The name is relative to the folder of the main file. Each part of the
    /// name consists of ASCII letters, digits, `.`, `_` and `-`, and does not begin with `.`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub create: bool,
}

/// Edit of a configuration file. Comments, order and spacing of everything else are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Edit {
    /// Sets a key. Missing tables are created.
    Set {
        /// Path of the key, such as `["site", "example.com", "root"]`.
        path: Vec<String>,
        /// Value in TOML; a string needs its quotes.
        value: String,
    },
    /// Removes a key or a table, which must exist.
    Remove {
        /// Path of the key or table.
        path: Vec<String>,
    },
    /// Adds a site that serves a folder.
    AddSite {
        /// Name, such as `example.com` or `:8081`.
        name: String,
        /// Folder, relative to the folder of the configuration file.
        root: String,
    },
    /// Adds a copy of a site, without its aliases.
    CopySite {
        /// Name of the site that is copied.
        from: String,
        /// Name of the copy.
        to: String,
    },
    /// Gives a site another name.
    RenameSite {
        /// Present name.
        from: String,
        /// New name.
        to: String,
    },
    /// Sets a key of a site to the text of a form field. Unlike the value of `set`, the text is not TOML: a string has
    /// no quotes, and a list has one element on each line.
    SetField {
        /// Name of the site.
        site: String,
        /// Name of the field, such as `root` or `limits.body_size`.
        field: String,
        /// New text; an empty text removes the key.
        text: String,
    },
    /// Sets a key of the server to the text of a form field, written as for `set_field`.
    SetServerField {
        /// Name of the field, such as `server.workers`.
        field: String,
        /// New text; an empty text removes the key.
        text: String,
    },
}

impl Edit {
    /// Returns the path of the key or table that the edit concerns: for a field, the table of its site. The key or
    /// table need not exist.
    pub fn path(&self) -> Vec<&str> {
        match self {
            Edit::Set { path, .. } | Edit::Remove { path } => path.iter().map(String::as_str).collect(),
            Edit::AddSite { name, .. } => vec!["site", name],
            Edit::CopySite { from, .. } | Edit::RenameSite { from, .. } => vec!["site", from],
            Edit::SetField { site, .. } => vec!["site", site],
            Edit::SetServerField { field, .. } => field.split('.').collect(),
        }
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Edit::Set { path, .. } => write!(f, "set {}", path.join(".")),
            Edit::Remove { path } => write!(f, "remove {}", path.join(".")),
            Edit::AddSite { name, .. } => write!(f, "add site {name}"),
            Edit::CopySite { from, to } => write!(f, "copy site {from} to {to}"),
            Edit::RenameSite { from, to } => write!(f, "rename site {from} to {to}"),
            Edit::SetField { site, field, .. } => write!(f, "set site.{site}.{field}"),
            Edit::SetServerField { field, .. } => write!(f, "set {field}"),
        }
    }
}

/// Result of a change that was written to the file and loaded by the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Saved {
    /// Text for the operator, without a newline at the end.
    pub message: String,
    /// File that was changed.
    #[serde(default)]
    pub file: PathBuf,
    /// Revision of the new text.
    pub revision: String,
    /// True if an undo restores the text before this change. False if the change could not be recorded, which a finding
    /// reports, and if the text is the same as before.
    #[serde(default)]
    pub can_undo: bool,
    /// Warnings about the new text, and about its effect.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// A change of a file of the configuration by the control API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// Number of the change. Later changes have larger numbers.
    pub id: u64,
    /// Time of the change, in seconds since the beginning of 1970.
    pub unix_time: u64,
    /// File that was changed.
    #[serde(default)]
    pub file: PathBuf,
    /// Revision of the present text of the file, which an undo replaces.
    #[serde(default)]
    pub revision: String,
    /// Description in one line.
    pub what: String,
    /// Difference between the texts before and after the change, as a unified diff. Empty if the text after it is
    /// unknown: an earlier version of the server did not record it, and the file was edited by hand afterwards.
    pub diff: String,
}

/// Request to restore the text before a change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Undo {
    /// Number of the change; `None`: the last one of all files.
    pub id: Option<u64>,
    /// Revision of the text that is replaced. If the file has another revision, it stays as it is.
    pub revision: Option<String>,
    /// True to discard edits that are not in the history, such as edits by hand; then `revision` is required. Otherwise
    /// an undo that would discard such edits is refused with status 409, and the details of the error show them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub discard_edits: bool,
}

/// List of changes for a terminal, each with its diff.
#[derive(Debug)]
pub struct ChangeList<'c>(pub &'c [Change]);

impl fmt::Display for ChangeList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "no changes");
        }
        // The names of files are shown only if they differ.
        let several = self.0.iter().any(|change| change.file != self.0[0].file);
        for change in self.0 {
            // Descriptions and names are cut after 200 characters.
            let (date, what) = (text::http_date(change.unix_time), text::sanitized(&change.what, 200));
            match change.file.file_name().filter(|_| several) {
                Some(name) => {
                    let file = text::sanitized(&name.to_string_lossy(), 200);
                    writeln!(f, "{}  {date}  {file}: {what}", change.id)?;
                }
                None => writeln!(f, "{}  {date}  {what}", change.id)?,
            }
            f.write_str(&text::indented(&change.diff, 4))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_listed_with_their_times() {
        let change = Change {
            id: 3,
            unix_time: 784_111_777,
            what: "set a\u{1b}".into(),
            diff: "-b\n+c\n".into(),
            file: PathBuf::from("/r.toml"),
            revision: String::new(),
        };
        let expected = "3  Sun, 06 Nov 1994 08:49:37 GMT  set a?\n    -b\n    +c\n";
        assert_eq!(ChangeList(&[change]).to_string(), expected);
        assert_eq!(ChangeList(&[]).to_string(), "no changes\n");
    }
}
