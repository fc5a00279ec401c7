//! Bodies of the fuzz targets, shared with the tests that replay the seeds. They are not part of the stable interface.

use std::path::Path;

use crate::environment::MemoryEnvironment;
use crate::finding::{MAX_FINDINGS, Report};
use crate::htpasswd;
use crate::model::PasswordHash;

/// Reads bytes as a configuration file. Bytes that are not UTF-8 are ignored.
pub fn config(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = config_text(text);
    }
}

/// Formats a text, loads it into an [`Editor`](crate::edit::Editor) and writes it again, and reads it as a
/// configuration. Checks the invariants that hold for every text.
///
/// # Errors
///
/// Returns the report if the text is refused.
///
/// # Panics
///
/// Panics if an invariant is violated.
pub fn config_text(text: &str) -> Result<(), Report> {
    let mut environment = MemoryEnvironment {
        any_directory: true,
        ..MemoryEnvironment::default()
    };
    // One file and one variable exist, so that a text can use `include` and `${A}` without an error.
    let included = "[site.\"in.test\"]\nroot = \".\"\n";
    environment
        .files
        .insert("/etc/rocknet/sites/a.toml".into(), included.to_owned());
    environment.variables.insert("A".to_owned(), "a".to_owned());
    if let Ok(formatted) = crate::format(text) {
        assert_eq!(
            crate::format(&formatted).as_ref(),
            Ok(&formatted),
            "formatting is idempotent"
        );
        if let Ok(editor) = crate::edit::Editor::new(text) {
            assert!(crate::format(&editor.to_string()).is_ok(), "an editor returns TOML");
        }
    }
    let loaded = crate::parse(text, Path::new("/etc/rocknet/rocknet.toml"), &environment);
    if let Err(report) = &loaded {
        assert!(report.errors() > 0, "a refused text has an error");
        assert!(report.findings.len() <= MAX_FINDINGS);
        assert!(
            !report.to_string().contains('\u{1b}'),
            "a report contains no escape sequences"
        );
        assert_eq!(report.json()["ok"], false);
    }
    loaded.map(|_| ())
}

/// Parses any bytes as a password file. Checks that errors name existing lines, and that the users can be written and
/// parsed again.
///
/// # Panics
///
/// Panics if an invariant is violated.
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
            // A line that begins with `#` is a comment, so no parsed name begins with `#`.
            assert_eq!(htpasswd::parse(written.concat().as_bytes()), Ok(users));
        }
    }
}
