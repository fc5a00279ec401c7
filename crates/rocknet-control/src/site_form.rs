//! Forms of a site and of the server. A form has a field for each of the most used keys. All other keys are edited in
//! the text of the configuration file.

pub mod content;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Form of a site.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SiteForm {
    /// Name of the site.
    pub name: String,
    /// File that defines the site.
    pub file: PathBuf,
    /// Line of the site in the file, from 1.
    pub line: usize,
    /// Revision of the file.
    pub revision: String,
    /// Fields, in the order of the form. Fields of a group follow each other.
    pub fields: Vec<SiteField>,
}

/// Form of the server: keys that concern all websites.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServerForm {
    /// File that defines the table `server`; the main file if no file does.
    pub file: PathBuf,
    /// Revision of the file.
    pub revision: String,
    /// Fields, in the order of the form. The name of each is the path of its key, such as `server.workers`.
    pub fields: Vec<SiteField>,
}

/// Field of a form: a key of the site or the server. Keys without a field are edited in the text of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SiteField {
    /// Path of the key below the site, with dots: `root`, `limits.body_size`.
    pub name: String,
    /// Label in the words of an operator.
    pub label: String,
    /// Heading of the group of the field.
    pub group: String,
    /// Input that suits the key.
    pub input: FieldInput,
    /// Words that the field accepts. A choice accepts nothing else. Other inputs accept them beside their own values: a
    /// field for a number may also accept the word `auto`.
    pub words: Vec<FieldWord>,
    /// Documentation of the key. The first sentence is the summary.
    pub help: String,
    /// Text of the default; empty without a default.
    pub default: String,
    /// Text of an example; empty without an example.
    pub example: String,
    /// Text of the value; empty if the key is not written, or if `other` has the value.
    pub text: String,
    /// Value as TOML, if the field cannot show it. Such a value is edited in the text of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
}

impl SiteField {
    /// Returns the text that the field shows until a user changes it: the present value. A switch whose key is not in
    /// the file shows its default.
    pub fn present(&self) -> &str {
        match self.input {
            FieldInput::Switch if self.text.is_empty() => &self.default,
            _ => &self.text,
        }
    }
}

/// Input that suits a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FieldInput {
    /// `true` or `false`.
    Switch,
    /// One of the words of the field.
    Choice,
    /// One element on each line.
    List,
    /// One `name = value` on each line.
    Map,
    /// One line of text, also for an input that only a newer server knows.
    #[default]
    #[serde(other)]
    Text,
}

/// Word that a field accepts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FieldWord {
    /// The word.
    pub text: String,
    /// Description of its effect: a phrase.
    pub help: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_newer_servers_are_read() {
        let field: SiteField = serde_json::from_str(r#"{"name": "a", "input": "wheel", "moons": 2}"#).unwrap();
        assert_eq!((field.name.as_str(), field.input), ("a", FieldInput::Text));
    }
}
