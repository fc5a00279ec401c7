//! Forms of a site and of the server: their common keys, with their values in the file.

use std::path::Path;

use rocknet_config::edit::{Editor, FieldValue, KeyPositions, samples};
use rocknet_config::form::{self, Field};
use rocknet_config::keys::Word;
use rocknet_control::site_form::{FieldInput, FieldWord, ServerForm, SiteField, SiteForm};

use super::super::config_file::revision;

/// Returns the form of a site. `text`: the text of the file, which `editor` has read.
pub fn of_site(name: &str, file: &Path, text: &str, editor: &Editor) -> SiteForm {
    SiteForm {
        name: name.to_owned(),
        file: file.to_owned(),
        // Line 1 if the position is unknown.
        line: KeyPositions::new(text).line(&["site", name]).unwrap_or(1),
        revision: revision(text),
        fields: form::FIELDS.iter().map(|field| of_key(field, editor, name)).collect(),
    }
}

/// Returns the form of the server. `text`: the text of the file, which `editor` has read.
pub fn of_server(file: &Path, text: &str, editor: &Editor) -> ServerForm {
    ServerForm {
        file: file.to_owned(),
        revision: revision(text),
        fields: form::SERVER_FIELDS
            .iter()
            .map(|field| of_key(field, editor, ""))
            .collect(),
    }
}

/// Returns a form field with the value of its key. `site`: name of the site; empty for a field of the server. A value
/// that the field cannot show is in `other`, as TOML.
fn of_key(field: &Field, editor: &Editor, site: &str) -> SiteField {
    let (text, other) = match editor.field(site, field) {
        FieldValue::Missing => (String::new(), None),
        FieldValue::Text(text) => (text, None),
        FieldValue::Other(value) => (String::new(), Some(value)),
    };
    let (default, example) = samples(field);
    let word = |word: &Word| FieldWord {
        text: word.text.to_owned(),
        help: word.doc.to_owned(),
    };
    SiteField {
        name: field.name(),
        label: field.label.to_owned(),
        group: field.group.to_owned(),
        input: match field.input() {
            form::FieldInput::Switch => FieldInput::Switch,
            form::FieldInput::Choice => FieldInput::Choice,
            form::FieldInput::Text => FieldInput::Text,
            form::FieldInput::List => FieldInput::List,
            form::FieldInput::Map => FieldInput::Map,
        },
        words: field.words().into_iter().map(word).collect(),
        help: field.key().map_or("", |key| key.doc).to_owned(),
        default,
        example,
        text,
        other,
    }
}
