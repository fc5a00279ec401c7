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
//! sites. The `writer` renders the document, and removes each value that the check of the configuration refuses.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod access;
mod apache;
mod caddy;
mod directive;
mod document;
#[doc(hidden)]
pub mod fuzzing;
mod hosts;
mod imported;
mod nginx;
mod note;
mod proxy;
mod refusal;
mod regex;
mod settings;
mod units;
mod value;
mod writer;

pub use imported::{Import, ImportError};
pub use note::{Note, NoteKind};

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

/// Translates a text. `name`: name of its file, for comments and notes; the folder of an `.htaccess` becomes the root.
///
/// # Errors
///
/// Fails if the text is larger than [`MAX_BYTES`], or is not a configuration of this language.
pub fn import(language: Language, name: &str, text: &str) -> Result<Import, ImportError> {
    if text.len() > MAX_BYTES {
        return Err(ImportError {
            line: None,
            message: format!("the file is larger than {} MiB", MAX_BYTES >> 20),
        });
    }
    let document = match language {
        Language::Nginx => nginx::translate(&nginx::read(text)?),
        Language::Apache => apache::translate(&apache::read(text)?, name),
        Language::Caddy => caddy::translate(&caddy::read(text)?),
    };
    writer::write(document, name)
}
