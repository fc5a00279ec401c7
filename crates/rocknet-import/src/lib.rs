//! Translates configurations of nginx, Apache and Caddy to a RockNet configuration.
//!
//! The result is a commented TOML text that `rocknet_config::parse` accepts, with notes. A [`Note`] names a directive
//! that was not translated, that works differently in RockNet, or that RockNet does not need. A directive outside the
//! known forms is never dropped without a note.
//!
//! ```
//! let text = "server { listen 80; server_name example.com; root /var/www; }";
//! let import = rocknet_import::import(rocknet_import::Language::Nginx, "site.conf", text)?;
//! assert!(import.toml.contains("[site.\"example.com\"]\ntls = \"off\"\nroot = \"/var/www\"\n"));
//! # Ok::<(), rocknet_import::ImportError>(())
//! ```
//!
//! Each language has a reader, which returns a tree of directives, and a translation of that tree to a document of
//! sites. The module `include` inserts the directives of included files into the tree. The `writer` renders the
//! document, and removes each value that the check of the configuration refuses.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod access;
mod apache;
mod caddy;
mod condition;
mod directive;
mod document;
mod error_page;
mod file_rules;
#[doc(hidden)]
pub mod fuzzing;
mod hosts;
mod imported;
mod include;
mod lookahead;
mod marks;
mod nginx;
mod note;
mod placeholder;
mod proxy;
mod refusal;
mod regex;
mod settings;
mod source;
mod units;
mod value;
mod writer;

pub use imported::{Import, ImportError};
pub use note::{Note, NoteKind};

use std::path::Path;

use rocknet_config::environment::Environment;

use directive::Directive;
use include::{IncludeReader, IncludeRules};
use source::SourceMap;

/// Maximum size of a configuration that is translated. Configurations written by hand are far smaller.
pub const MAX_BYTES: usize = 4 << 20;

/// Language of the configuration that is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// `nginx.conf`, or a file of `sites-available`.
    Nginx,
    /// `httpd.conf`, a file of `sites-available`, or an `.htaccess`.
    Apache,
    /// A Caddyfile.
    Caddy,
}

/// Translates a text. `name`: name of its file, which comments and notes contain. If the file is an `.htaccess`, its
/// folder becomes the root of the site.
///
/// No other file is read: a directive that includes files has a note. [`import_file`] reads them.
///
/// # Errors
///
/// Fails if the text is larger than [`MAX_BYTES`], is not a configuration of this language, or has too many values that
/// RockNet does not accept.
pub fn import(language: Language, name: &str, text: &str) -> Result<Import, ImportError> {
    check_size(name, text)?;
    let mut sources = SourceMap::default();
    sources.add(name, text);
    let tree = match language {
        Language::Nginx => nginx::read(text),
        Language::Apache => apache::read(text),
        Language::Caddy => caddy::read(text),
    };
    let tree = tree.map_err(|error| ImportError {
        file: name.to_owned(),
        ..ImportError::from(error)
    })?;
    translate(language, &tree, name, &sources, Vec::new())
}

/// Translates a file with the files that it includes. Each note names the file of its directive.
///
/// Relative paths are resolved as the other server does: below the folder of `nginx.conf`, below `ServerRoot`, or below
/// the folder of the Caddyfile. All files together may have four times [`MAX_BYTES`], and includes may be nested eight
/// levels deep. A file beyond these limits is left out, with a note.
///
/// # Errors
///
/// Fails if the file cannot be read or is larger than [`MAX_BYTES`], or if it or an included file is not a
/// configuration of this language. Also fails if the files have too many values that RockNet does not accept.
pub fn import_file(language: Language, file: &Path, environment: &dyn Environment) -> Result<Import, ImportError> {
    let name = file.display().to_string();
    let text = environment.read(file).map_err(|error| ImportError {
        file: name.clone(),
        line: None,
        message: error.to_string(),
    })?;
    check_size(&name, &text)?;
    let rules: Box<dyn IncludeRules> = match language {
        Language::Nginx => Box::new(nginx::NginxIncludes::new(environment, file)),
        Language::Apache => Box::new(apache::ApacheIncludes::new(environment, file)),
        Language::Caddy => Box::new(caddy::CaddyIncludes),
    };
    let mut reader = IncludeReader::new(environment, &*rules);
    let tree = reader.read(file, &text)?;
    translate(language, &tree, &name, &reader.sources, reader.notes)
}

fn check_size(name: &str, text: &str) -> Result<(), ImportError> {
    if text.len() <= MAX_BYTES {
        return Ok(());
    }
    Err(ImportError {
        file: name.to_owned(),
        line: None,
        message: format!("the file is larger than {} MiB", MAX_BYTES >> 20),
    })
}

fn translate(
    language: Language,
    tree: &[Directive],
    name: &str,
    sources: &SourceMap,
    mut notes: Vec<Note>,
) -> Result<Import, ImportError> {
    let mut document = match language {
        Language::Nginx => nginx::translate(tree, sources),
        Language::Apache => apache::translate(tree, name, sources),
        Language::Caddy => caddy::translate(tree, sources),
    };
    document.notes.append(&mut notes);
    // Removes `resolved = true` from the refusals for which it makes no difference.
    document.sites.iter_mut().for_each(file_rules::settle);
    writer::write(document, name)
}
