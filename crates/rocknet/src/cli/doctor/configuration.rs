//! Loads the configuration, whose check is the first one and supplies the facts for the others.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rocknet_config::model::Config;
use rocknet_config::{Code, Finding, Loaded};

use super::access;
use super::denied_paths::RecordingEnvironment;
use super::served::Running;
use super::server_account::{OtherAccount, needs_root};
use super::verdict::Check;

const SUBJECT: &str = "configuration";

/// Maximum number of findings about sites; `rocknet check` shows all.
const MAX_SITES: usize = 64;

/// Loads the configuration and adds its checks. Returns `None` if it has an error that concerns all sites. `running`:
/// the server of the configuration.
pub(super) fn load(file: Option<&Path>, running: &Running, checks: &mut Vec<Check>) -> Option<Config> {
    let Some(file) = file else {
        checks.push(Check::fair(
            SUBJECT,
            "config-missing",
            "no configuration exists yet: `rocknet serve DIR` works without one, `rocknet run` serves the welcome page",
        ));
        return Some(Config::default());
    };
    let environment = RecordingEnvironment::default();
    match rocknet_config::load(file, &environment) {
        Ok(Loaded { config, warnings }) => {
            // Errors of single sites are among the warnings, because the other sites can be served. A warning about a
            // certificate concerns a single site, too.
            let other = OtherAccount::find(&config, running);
            let mut denied: BTreeSet<PathBuf> = BTreeSet::new();
            let mut known = Vec::new();
            for finding in &warnings {
                match environment.denied_path(finding).filter(|_| other.is_some()) {
                    Some(path) => drop(denied.insert(path)),
                    None => known.push(finding),
                }
            }
            let (of_sites, others): (Vec<_>, Vec<_>) = known
                .into_iter()
                .partition(|finding| finding.is_error() || finding.code == Code::Certificate);
            checks.push(match others.first() {
                None => Check::good(SUBJECT, format!("{}, sites: {}", file.display(), config.sites.len())),
                Some(first) => {
                    let found = format!(
                        "{}: {}; `rocknet check` shows all findings",
                        file.display(),
                        first.message
                    );
                    Check::fair(SUBJECT, "config-warning", found)
                        .place(&file.display())
                        .command(check_command(file))
                }
            });
            checks.extend(of_sites.into_iter().take(MAX_SITES).map(of_site));
            if let (Some(other), Some(first)) = (&other, denied.first()) {
                let more = match denied.len() - 1 {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let what = format!("{}{more}, which this account may not see", first.display());
                checks.push(other.skipped("site", &what));
            }
            Some(config)
        }
        Err(report) => {
            // The configuration of a server of another account may be closed to this one.
            if let Some(path) = environment.path_of_others(&report.findings) {
                let why = format!("this account may not see {}", path.display());
                checks.push(needs_root(SUBJECT, why).place(&path.display()));
                return None;
            }
            let first = report.findings.iter().find(|finding| finding.is_error());
            let first = first.map_or("", |finding| finding.message.as_str());
            let found = format!("{}: {first}; `rocknet check` shows all findings", file.display());
            checks.push(
                Check::bad(SUBJECT, "config-invalid", found)
                    .place(&file.display())
                    .command(check_command(file)),
            );
            None
        }
    }
}

/// Returns the command that shows all findings about a configuration.
fn check_command(file: &Path) -> String {
    format!("rocknet check --config {}", access::quoted(file))
}

/// Returns the check for a finding that keeps one site from being served or trusted.
fn of_site(finding: &Finding) -> Check {
    let help = finding.help.as_deref().unwrap_or_default();
    let found = match help {
        "" => finding.message.clone(),
        help => format!("{}: {help}", finding.message),
    };
    let code = match finding.code {
        Code::Certificate => "certificate-unusable",
        _ => "site-not-served",
    };
    let check = if finding.is_error() {
        Check::bad("site", code, found)
    } else {
        Check::fair("site", code, found)
    };
    match &finding.location {
        Some(location) => check.place(&format_args!("{}:{}", location.file.display(), location.line)),
        None => check,
    }
}
