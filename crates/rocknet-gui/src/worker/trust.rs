//! Trust stores of this account, as `rocknet trust --look` finds them.
//!
//! The check-up of the server would read the stores of the server's account, which may be another account. Therefore
//! this program runs the command itself.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::output::last_error;
use crate::job::{Trouble, Trust, TrustStore};

/// Output of `rocknet trust --look --json`.
#[derive(Debug, Deserialize)]
struct Looked {
    stores: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    store: String,
    path: std::path::PathBuf,
    state: String,
    #[serde(default)]
    trouble: Option<String>,
}

/// Returns the trust stores of this account and of the system; none if there is no local CA yet.
///
/// # Errors
///
/// Returns a message if the program is missing or fails.
pub fn look(program: Option<&Path>, config: Option<&Path>) -> Result<Vec<TrustStore>, Trouble> {
    let program = program.ok_or(Trouble::NoProgram)?;
    let mut command = Command::new(program);
    command.args(["trust", "--look", "--json"]).stdin(Stdio::null());
    if let Some(config) = config {
        command.arg("--config").arg(config);
    }
    let output = command.output().map_err(|error| Trouble::of(program, &error))?;
    // The exit code is 1 as long as a store does not trust the local CA.
    parse(&output.stdout).ok_or_else(|| {
        last_error(&output.stderr).map_or_else(|| Trouble::CommandFailed("rocknet trust".to_owned()), Trouble::Text)
    })
}

fn parse(json: &[u8]) -> Option<Vec<TrustStore>> {
    let looked: Looked = serde_json::from_slice(json).ok()?;
    let store = |row: Row| TrustStore {
        trust: match row.state.as_str() {
            "trusted" => Trust::Trusted,
            "not trusted" => Trust::NotYet,
            _ => Trust::Unknown,
        },
        reader: row.store,
        path: row.path,
        trouble: row.trouble.unwrap_or_default(),
    };
    Some(looked.stores.into_iter().map(store).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_read_from_the_output() {
        let json = br#"{"cas": [{"name": "CA 1", "file": "/s/ca.pem"}], "stores": [
            {"store": "system", "path": "/etc/ssl/certs", "ca": "CA 1", "state": "not trusted", "trouble": null},
            {"store": "Firefox", "path": "/f", "ca": "CA 1", "state": "trusted"},
            {"store": "Chromium", "path": "/c", "ca": "CA 1", "state": "unknown", "trouble": "certutil is missing"}]}"#;
        let stores = parse(json).unwrap();
        let states: Vec<_> = stores.iter().map(|store| store.trust).collect();
        assert_eq!(states, [Trust::NotYet, Trust::Trusted, Trust::Unknown]);
        assert!(stores[0].is_of_system() && !stores[1].is_of_system());
        assert_eq!(stores[2].trouble, "certutil is missing");
        assert_eq!(parse(br#"{"cas": [], "stores": []}"#), Some(Vec::new()));
        assert_eq!(parse(b"error"), None);
    }

    #[test]
    fn a_missing_or_failing_program_is_reported() {
        assert_eq!(look(None, None), Err(Trouble::NoProgram));
        assert!(look(Some(Path::new("/nonexistent")), None).is_err());
        let failed = look(Some(Path::new("/bin/false")), None);
        assert_eq!(failed, Err(Trouble::CommandFailed("rocknet trust".to_owned())));
    }
}
