//! Checks the accounts of the server and its scripts (PHP and CGI), and whether scripts can reach the server's private
//! keys.

use std::collections::BTreeSet;
use std::path::Path;

use rocknet::certificates::state_folder;
use rocknet::gateway::accounts;
use rocknet_config::model::{CertificateSource, Config, Settings, Site};
use rocknet_io::privileges::{self, User};

use super::access::quoted;
use super::facts::DoctorFacts;
use super::verdict::Check;

const SUBJECT: &str = "accounts";

/// Maximum number of key files outside the state folder that are checked for each account, which bounds the duration.
const MAX_KEYS: usize = 1_000;

/// The account with all privileges.
const ROOT: &str = "root";

/// Checks the accounts under which the server and its scripts run.
pub(super) fn check(facts: &DoctorFacts<'_>) -> Vec<Check> {
    let config = facts.config;
    let has_scripts = accounts::runs_scripts(config);
    if let Some(other) = &facts.other_account {
        let skipped = || other.skipped(SUBJECT, "accounts of scripts, and the files that they can read");
        return has_scripts.then(skipped).into_iter().collect();
    }
    if !privileges::is_root() {
        let found = "scripts run as this user, who can read the private keys of the server; start RockNet as root, and it runs \
                     them under another account";
        return has_scripts
            .then(|| Check::fair(SUBJECT, "scripts-share-account", found))
            .into_iter()
            .collect();
    }
    let mut checks = Vec::new();
    let account = accounts::server_account(config);
    if account.is_none() {
        let found = "the server stays root: `useradd --system rocknet` creates an account for it";
        checks.push(Check::fair(SUBJECT, "server-stays-root", found).command("useradd --system rocknet"));
        if !has_scripts {
            return checks;
        }
    }
    let server = match User::find(account.as_deref().unwrap_or(ROOT)) {
        Ok(user) => user,
        Err(error) => return vec![Check::bad(SUBJECT, "account-unknown", error.to_string())],
    };
    let plan = accounts::AccountPlan::from_config(config);
    let scripts = match plan.accounts(&server) {
        Ok(scripts) => scripts,
        Err(error) => return vec![Check::bad(SUBJECT, "account-unknown", error.to_string())],
    };
    let names: Vec<_> = scripts.all.iter().map(|user| user.name.as_str()).collect();
    checks.push(match names.as_slice() {
        [] if has_scripts => Check::bad(
            SUBJECT,
            "scripts-share-account",
            format!(
                "scripts run as {}, like the server, and can read its private keys: `useradd --system www-data`",
                server.name
            ),
        ),
        [] => Check::good(SUBJECT, format!("the server runs as {}", server.name)),
        _ => Check::good(
            SUBJECT,
            format!("the server runs as {}, scripts as {}", server.name, names.join(", ")),
        ),
    });
    // `needs_default` is true if a site or route with scripts names no account.
    if plan.needs_default
        && !scripts.all.is_empty()
        && let Err(error) = scripts.default_account()
    {
        checks.push(Check::bad(SUBJECT, "account-unknown", error.to_string()));
    }
    let state = state_folder(config);
    for user in &scripts.all {
        checks.extend(check_state_folder(&state, user));
        if has_scripts {
            checks.extend(keys(config, &state).filter_map(|key| check_key(key, user)));
        }
    }
    checks
}

/// Reports a file of the state folder that the account can read or change, or a folder in it or above it in which the
/// account can replace entries.
fn check_state_folder(state: &Path, user: &User) -> Option<Check> {
    // An error is ignored, because the folder does not exist before the first start.
    let path = accounts::reachable(state, user).ok()??;
    let (name, shown, word) = (&user.name, path.display(), quoted(&path));
    let found = format!(
        "scripts of {name} can read or replace {shown}: deny access to others (chmod go-rwx {word}), or name another `state`"
    );
    Some(Check::bad(SUBJECT, "key-readable-by-scripts", found).place(&shown))
}

/// Reports a key that the account can read or change, directly or through a group, or a folder above it in which the
/// account can replace the key.
fn check_key(key: &Path, user: &User) -> Option<Check> {
    // An error is ignored, because a missing key is reported as an error of its site.
    let path = accounts::reachable(key, user).ok()??;
    let (name, shown, word) = (&user.name, path.display(), quoted(&path));
    let found = if path.is_file() {
        format!(
            "scripts of {name} can read or change the private key {shown}: chmod go-rwx {word}, or give it a group \
             that {name} is not in"
        )
    } else {
        let key = key.display();
        format!("scripts of {name} can replace the private key {key} in the folder {shown}: chmod go-w {word}")
    };
    Some(Check::bad(SUBJECT, "key-readable-by-scripts", found).place(&shown))
}

/// Returns the private key files that the configuration names outside the state folder, without duplicates.
fn keys<'c>(config: &'c Config, state: &Path) -> impl Iterator<Item = &'c Path> + use<'c> {
    let all: BTreeSet<&Path> = config
        .sites
        .iter()
        .flat_map(key_files)
        .filter(|key| !key.starts_with(state))
        .collect();
    all.into_iter().take(MAX_KEYS)
}

/// Returns the keys of a site's own certificates and of its client certificates for upstreams.
fn key_files(site: &Site) -> impl Iterator<Item = &Path> {
    let own = match site.tls.as_ref().map(|tls| &tls.source) {
        Some(CertificateSource::Files(files)) => files.as_slice(),
        _ => &[],
    };
    let settings = std::iter::once(&site.settings).chain(site.routes.iter().map(|route| &route.settings));
    // The pair `client` is the certificate file and the key file.
    let to_upstreams =
        settings.filter_map(|settings: &Settings| Some(settings.proxy.as_ref()?.tls.client.as_ref()?.1.as_path()));
    own.iter().map(|files| files.key.as_path()).chain(to_upstreams)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn paths_are_quoted_in_commands() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("a b");
        let key = folder.join("it's.key");
        fs::create_dir(&folder).expect("a folder");
        fs::write(&key, "").expect("a file");
        let user = User::find("nobody").expect("an account");
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).expect("permissions");
        let found = |check: Option<Check>| check.expect("a finding").found;
        let (shown, quoted_key) = (folder.display(), quoted(&key));
        set(dir.path(), 0o755);
        set(&folder, 0o755);
        set(&key, 0o644);
        let readable = format!("chmod go-rwx {quoted_key}");
        assert!(found(check_key(&key, &user)).contains(&readable));
        assert!(found(check_state_folder(&folder, &user)).contains(&readable));
        set(&folder, 0o777);
        assert!(found(check_key(&key, &user)).contains(&format!("chmod go-w '{shown}'")));
    }
}
