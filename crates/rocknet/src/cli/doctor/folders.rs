//! Checks that the accounts of the server and of its scripts can use the folders and files that they need: the state
//! folder, logs, roots, private keys and the configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rocknet::certificates::state_folder;
use rocknet::certificates::storage::FileStorage;
use rocknet::gateway::accounts;
use rocknet_config::model::{Auth, CertificateSource, Config, LogTarget, Settings, SignedUrls, Site};
use rocknet_io::privileges::{self, User};

use super::access::{self, Blocked, Need};
use super::facts::DoctorFacts;
use super::log_folder;
use super::verdict::Check;

const SUBJECT: &str = "folders";

/// Maximum number of folders and files that are checked for an account, which bounds the duration.
const MAX_NEEDS: usize = 256;

/// Use of a folder or file by an account.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Purpose {
    /// Root of a site or route, with the name of the site.
    Root(String),
    /// Log file.
    Log,
    /// Private key, with the name of the site.
    Key(String),
    /// File with keys of signed URLs, with the name of the site.
    UrlKeys(String),
    /// Configuration file.
    Configuration,
}

/// A need that is not met.
type Denied<'a> = (&'a Purpose, &'a Need, Blocked);

pub(super) fn check(facts: &DoctorFacts<'_>) -> Vec<Check> {
    let config = facts.config;
    let mut checks = Vec::new();
    if !privileges::is_root() {
        if let Some(other) = &facts.other_account {
            let what = format!("rights of {other} to the state folder, logs and roots");
            checks.push(other.skipped(SUBJECT, &what));
            return checks;
        }
        checks.push(own_state_folder(config));
        checks.extend(of_account(None, &needs_of_server(config)));
        return checks;
    }
    let account = accounts::server_account(config).and_then(|name| User::find(&name).ok());
    let Some(server) = account else {
        // Root can use all folders and files. The check of accounts reports an unknown account.
        checks.push(own_state_folder(config));
        return checks;
    };
    checks.push(state_of_account(config, &server));
    checks.extend(of_account(Some(&server), &needs_of_server(config)));
    let scripts = accounts::AccountPlan::from_config(config).accounts(&server);
    for user in scripts.iter().flat_map(|scripts| &scripts.all) {
        checks.extend(of_account(Some(user), &needs_of_scripts(config, user)));
    }
    checks
}

/// Checks that this process can write to the state folder.
fn own_state_folder(config: &Config) -> Check {
    let path = state_folder(config);
    match FileStorage::new(&path).check_writable() {
        Ok(()) => Check::good("state", format!("{} can be written", path.display())),
        Err(error) => {
            let found = format!(
                "{} cannot be written: {error}; write state = \"FOLDER\" below [server], or make this user its owner",
                path.display()
            );
            Check::bad("state", "state-not-writable", found).place(&path.display())
        }
    }
}

/// Checks that the account of the server can write to the state folder. A server that starts as root gives the folder
/// to its account, but one that a service manager starts under the account does not.
fn state_of_account(config: &Config, server: &User) -> Check {
    let path = state_folder(config);
    if !path.exists() {
        let found = format!("{} does not exist yet; the server creates it", path.display());
        return Check::good("state", found);
    }
    let need = Need::write_folder(&path);
    let (shown, name) = (path.display(), &server.name);
    let blocked = match access::first_blocked(Some(server), std::slice::from_ref(&need)) {
        Ok(mut found) => found.pop().flatten(),
        Err(why) => return Check::skipped("state", "access-unknown", why),
    };
    let Some(blocked) = blocked else {
        return Check::good("state", format!("{shown} can be written by {name}"));
    };
    let found = format!("{name} cannot write to the state folder {shown} ({blocked}): give it to {name}");
    let command = format!("sudo chown {name} {}", access::quoted(&path));
    let check = Check::bad("state", "state-not-writable", found)
        .place(&shown)
        .command(command);
    let (uid, gid, account) = (server.uid, server.gid, server.clone());
    check.fix(format!("give {shown} to {name}"), move || {
        let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        FileStorage::new(&path)
            .chown(uid, gid)
            .map_err(|error| failed(&error))?;
        match access::first_blocked(Some(&account), &[Need::write_folder(&path)])?
            .pop()
            .flatten()
        {
            None => Ok(format!("{} belongs to {}", path.display(), account.name)),
            // `FileStorage::chown` keeps the owner of a folder that also contains files of other programs. Or the
            // account may not enter a folder above it.
            Some(blocked) => Err(failed(&blocked)),
        }
    })
}

/// Returns the needs of the server, without its state folder.
fn needs_of_server(config: &Config) -> Vec<(Purpose, Need)> {
    let mut needs = Vec::new();
    for site in &config.sites {
        let roots = settings(site).filter_map(|settings| settings.root.as_ref());
        needs.extend(roots.map(|root| (Purpose::Root(site.name.clone()), Need::read_folder(root))));
        let url_keys = settings(site).filter_map(|settings| match &settings.auth {
            Some(Auth::Signed(SignedUrls::File(file))) => {
                Some((Purpose::UrlKeys(site.name.clone()), Need::read_file(file)))
            }
            _ => None,
        });
        needs.extend(url_keys);
        if let Some(CertificateSource::Files(files)) = site.tls.as_ref().map(|tls| &tls.source) {
            let keys = files
                .iter()
                .map(|files| (Purpose::Key(site.name.clone()), Need::read_file(&files.key)));
            needs.extend(keys);
        }
    }
    needs.extend(
        log_files(config)
            .into_iter()
            .map(|file| (Purpose::Log, Need::write_log(&file))),
    );
    needs.extend(
        config
            .files
            .iter()
            .map(|file| (Purpose::Configuration, Need::read_file(file))),
    );
    unique(needs)
}

/// Returns the needs of the scripts of an account: the roots of the sites whose programs may run under it.
fn needs_of_scripts(config: &Config, user: &User) -> Vec<(Purpose, Need)> {
    let mut needs = Vec::new();
    for site in &config.sites {
        let of_account = settings(site).filter(|settings| {
            let is_other = settings.user.as_ref().is_some_and(|name| *name != user.name);
            settings.runs_programs() && !is_other
        });
        let roots = of_account.filter_map(|settings| settings.root.as_ref());
        needs.extend(roots.map(|root| (Purpose::Root(site.name.clone()), Need::read_folder(root))));
    }
    unique(needs)
}

fn settings(site: &Site) -> impl Iterator<Item = &Settings> {
    std::iter::once(&site.settings).chain(site.routes.iter().map(|route| &route.settings))
}

/// Returns the files of all logs.
fn log_files(config: &Config) -> Vec<PathBuf> {
    let targets = [&config.log.errors, &config.log.access.target].into_iter();
    let targets = targets.chain(config.sites.iter().map(|site| &site.access.target));
    let files = targets.filter_map(|target| match target {
        LogTarget::File(file) => Some(file.clone()),
        _ => None,
    });
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    files.dedup();
    files
}

/// Removes needs of a path that occurred before, and those beyond the maximum.
fn unique(needs: Vec<(Purpose, Need)>) -> Vec<(Purpose, Need)> {
    let mut known = std::collections::BTreeSet::new();
    let mut needs: Vec<_> = needs
        .into_iter()
        .filter(|(_, need)| known.insert(need.path.clone()))
        .collect();
    needs.truncate(MAX_NEEDS);
    needs
}

/// Checks the needs of an account; `None` for the account of this process. Paths below the same closed folder share a
/// finding.
fn of_account(user: Option<&User>, needs: &[(Purpose, Need)]) -> Vec<Check> {
    let who = user.map_or("this user", |user| &user.name);
    if needs.is_empty() {
        return Vec::new();
    }
    let only_needs: Vec<Need> = needs.iter().map(|(_, need)| need.clone()).collect();
    let found = match access::first_blocked(user, &only_needs) {
        Ok(found) => found,
        Err(why) => return vec![Check::skipped(SUBJECT, "access-unknown", why)],
    };
    // The key is the closed path and the code, so that paths below one folder share a finding, and so do logs of one
    // folder.
    let mut groups: BTreeMap<(PathBuf, &'static str), Vec<Denied<'_>>> = BTreeMap::new();
    for ((purpose, need), blocked) in needs.iter().zip(found) {
        if let Some(blocked) = blocked {
            let code = code(purpose);
            let at = match (purpose, need.path.parent()) {
                (Purpose::Log, Some(folder)) if blocked.path == need.path => folder.to_owned(),
                _ => blocked.path.clone(),
            };
            let group = groups.entry((at, code)).or_default();
            group.push((purpose, need, blocked));
        }
    }
    if groups.is_empty() {
        return vec![Check::good(
            SUBJECT,
            format!(
                "{who} can use the roots, logs and keys that it needs: {} checked",
                needs.len()
            ),
        )];
    }
    let logs: Vec<&Path> = needs
        .iter()
        .filter(|(purpose, _)| *purpose == Purpose::Log)
        .map(|(_, need)| need.path.as_path())
        .collect();
    groups
        .into_values()
        .map(|group| finding(who, user, &group, &logs))
        .collect()
}

fn code(purpose: &Purpose) -> &'static str {
    match purpose {
        Purpose::Root(_) => "root-not-readable",
        Purpose::Log => "log-not-writable",
        Purpose::Key(_) => "key-not-readable",
        Purpose::UrlKeys(_) => "url-keys-not-readable",
        Purpose::Configuration => "config-not-readable",
    }
}

/// Returns the finding for needs that the same path blocks. `logs`: all log files.
fn finding(who: &str, user: Option<&User>, group: &[Denied<'_>], logs: &[&Path]) -> Check {
    let (purpose, need, blocked) = &group[0];
    let more = match group.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let path = need.path.display();
    let place = blocked.path.display();
    let command = access::command(user, need, blocked);
    match purpose {
        Purpose::Root(site) => {
            let found = format!("{who} cannot read the root {path} of {site}{more} ({blocked}): `{command}`");
            Check::bad(SUBJECT, "root-not-readable", found)
                .place(&place)
                .command(command)
        }
        Purpose::Key(site) => {
            let found = format!(
                "{who} cannot read the private key {path} of {site}{more} ({blocked}), so a renewed certificate is used \
                 only after a restart: `{command}`"
            );
            Check::fair(SUBJECT, "key-not-readable", found)
                .place(&place)
                .command(command)
        }
        Purpose::UrlKeys(site) => {
            let found = format!(
                "{who} cannot read the keys {path} of signed URLs of {site}{more} ({blocked}), so their requests get 503: \
                 `{command}`"
            );
            Check::bad(SUBJECT, "url-keys-not-readable", found)
                .place(&place)
                .command(command)
        }
        Purpose::Configuration => {
            let found = format!("{who} cannot read {path}{more} ({blocked}), so each reload fails: `{command}`");
            Check::fair(SUBJECT, "config-not-readable", found)
                .place(&place)
                .command(command)
        }
        Purpose::Log => {
            let found = format!("{who} cannot write the log {path}{more} ({blocked})");
            let check = Check::bad(SUBJECT, "log-not-writable", found).place(&place);
            let is_above = need.path.parent().is_some_and(|folder| {
                let at = blocked.path.as_path();
                folder.starts_with(at) && folder != at
            });
            if is_above {
                // The folder of the log may be right, so a folder above it has to be opened.
                let found = format!("{}: `{command}`", check.found);
                return Check { found, ..check }.command(command);
            }
            let files: Vec<&Path> = group.iter().map(|(_, need, _)| need.path.as_path()).collect();
            log_folder::add_remedy(check, user, &files, logs)
        }
    }
}
