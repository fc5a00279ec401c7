//! Loads the configuration, whose check is the first one and supplies the facts for the others.

use std::path::Path;

use rocknet::certificates::ServerEnvironment;
use rocknet_config::model::Config;
use rocknet_config::{Code, Finding, Loaded};

use super::verdict::Check;

const SUBJECT: &str = "configuration";

/// Maximum number of findings about sites; `rocknet check` shows all.
const MAX_SITES: usize = 64;

/// Loads the configuration and adds its checks. Returns `None` if it has an error that concerns all sites.
pub(super) fn load(file: Option<&Path>, checks: &mut Vec<Check>) -> Option<Config> {
    let Some(file) = file else {
        checks.push(Check::fair(
            SUBJECT,
            "config-missing",
            "no configuration exists yet: `rocknet serve DIR` works without one, `rocknet run` serves the welcome page",
        ));
        return Some(Config::default());
    };
    match rocknet_config::load(file, &ServerEnvironment::new()) {
        Ok(Loaded { config, warnings }) => {
            // Errors of single sites are among the warnings, because the other sites can be served. A warning about a
            // certificate concerns a single site, too.
            let (of_sites, others): (Vec<_>, Vec<_>) = warnings
                .iter()
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
            Some(config)
        }
        Err(report) => {
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
    let file = file.to_string_lossy();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    match file.chars().all(is_plain) {
        true => format!("rocknet check --config {file}"),
        false => format!("rocknet check --config '{}'", file.replace('\'', r"'\''")),
    }
}

/// Returns the check for a finding that keeps one site from being served or trusted.
fn of_site(finding: &Finding) -> Check {
    let help = finding.help.as_deref().unwrap_or_default();
    let found = format!("{}; {help}", finding.message);
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
