//! One body for each fuzz target and for the test that replays its seeds: everything that takes a text from outside.
//!
//! Not part of the interface: names here change without notice.

use std::path::Path;

use crate::environment::Memory;
use crate::finding::{MAX_FINDINGS, Report};
use crate::htpasswd;
use crate::model::PasswordHash;

/// Any bytes as a configuration file.
pub fn config(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = config_text(text);
    }
}

/// Reads, formats and edits a text, and checks what holds for every text.
pub fn config_text(text: &str) -> Result<(), Report> {
    let mut world = Memory {
        any_directory: true,
        ..Memory::default()
    };
    let included = "[site.\"in.test\"]\nroot = \".\"\n";
    world
        .files
        .insert("/etc/rocknet/sites/a.toml".into(), included.to_owned());
    world.variables.insert("A".to_owned(), "a".to_owned());
    if let Ok(formatted) = crate::format(text) {
        assert_eq!(
            crate::format(&formatted).as_ref(),
            Ok(&formatted),
            "formatting twice is formatting once"
        );
        if let Ok(editor) = crate::edit::Editor::new(text) {
            assert!(crate::format(&editor.to_string()).is_ok(), "an editor gives back TOML");
        }
    }
    let loaded = crate::parse(text, Path::new("/etc/rocknet/rocknet.toml"), &world);
    if let Err(report) = &loaded {
        assert!(report.errors() > 0, "what is refused has an error");
        assert!(report.findings.len() <= MAX_FINDINGS);
        assert!(!report.to_string().contains('\u{1b}'), "no terminal acts on a report");
        assert_eq!(report.json()["ok"], false);
    }
    loaded.map(|_| ())
}

/// Any bytes as a file of users: lines of error, or users each of which can be written again.
pub fn htpasswd(text: &[u8]) {
    match htpasswd::parse(text) {
        Err(errors) => {
            assert!(!errors.is_empty());
            let lines = text.split(|byte| *byte == b'\n').count();
            assert!(errors.iter().all(|error| (1..=lines).contains(&error.line)));
        }
        Ok(users) => {
            let written: Vec<String> = users
                .iter()
                .map(|(name, hash): (_, &PasswordHash)| format!("{name}:{}\n", hash.text()))
                .collect();
            // A name that begins with `#` would be a comment, and parse never returns one.
            assert_eq!(htpasswd::parse(written.concat().as_bytes()), Ok(users));
        }
    }
}
