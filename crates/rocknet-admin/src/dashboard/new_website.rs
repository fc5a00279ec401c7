//! Fields of the form for a new website, and the edits that add the website.

use rocknet_control::config::Edit;
use rocknet_control::site_form::{FieldInput, SiteField, SiteForm};

/// Content of a new website.
#[derive(Debug, Clone, Copy)]
pub enum NewContent<'c> {
    /// Files of this folder, or its PHP scripts.
    Folder { root: &'c str, has_php: bool },
    /// Another server with this address.
    Proxy(&'c str),
}

/// Returns the empty form of a new website.
pub fn form() -> SiteForm {
    let field = |name: &str, label: &str, help: &str, example: &str| SiteField {
        name: name.to_owned(),
        label: label.to_owned(),
        input: FieldInput::Text,
        help: help.to_owned(),
        example: example.to_owned(),
        ..SiteField::default()
    };
    let folder = "On the machine of the server. A folder that begins without `/` is beside the configuration file.";
    let address = "Requests are forwarded to it.";
    SiteForm {
        fields: vec![
            field("root", "Folder", folder, "/srv/my-site"),
            field("proxy", "Address of the other server", address, "http://127.0.0.1:3000"),
        ],
        ..SiteForm::default()
    }
}

/// Returns the edits that add a website. The first edit fails if a website with the name exists, also if it was added
/// after the form was checked.
pub fn edits(name: &str, content: NewContent<'_>) -> Vec<Edit> {
    let path = |key: &str| vec!["site".to_owned(), name.to_owned(), key.to_owned()];
    let add = |root: &str| Edit::AddSite {
        name: name.to_owned(),
        root: root.to_owned(),
    };
    let set = |key: &str, text: &str| Edit::Set {
        path: path(key),
        value: quoted(text),
    };
    match content {
        // `AddSite` needs a folder, which the last edit removes again. The edits are applied together or not at all.
        NewContent::Proxy(address) => vec![add("."), set("proxy", address), Edit::Remove { path: path("root") }],
        NewContent::Folder { root, has_php } => {
            let php = has_php.then(|| set("php", "auto"));
            std::iter::once(add(root)).chain(php).collect()
        }
    }
}

/// Returns a text as a TOML string. A JSON string is a valid TOML string, but TOML does not permit U+007F in it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
