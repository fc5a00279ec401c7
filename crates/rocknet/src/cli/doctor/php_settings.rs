//! Checks of the settings of PHP: names that PHP does not know, and OPcache, which keeps compiled scripts in memory.

use rocknet::gateway::php::{self, OpcacheSettings, PhpInfo};
use rocknet_config::model::PhpSettings;

use super::facts::DoctorFacts;
use super::verdict::Check;

const OPCACHE: &str = "OPcache";
const PHP: &str = "PHP";

/// Maximum number of combinations of a version with the settings of a site that are checked. Each check runs PHP once.
const MAX_CHECKED: usize = 16;

/// Checks each PHP that RockNet runs, with the settings of its sites. A version that is not installed is reported by
/// another check.
pub(super) fn check(facts: &DoctorFacts<'_>) -> Vec<Check> {
    let wanted = php::wanted(facts.config);
    if wanted.is_empty() {
        return Vec::new();
    }
    let installed = php::installed();
    let mut checks: Vec<Check> = Vec::new();
    for wanted in wanted.into_iter().take(MAX_CHECKED) {
        let Some(found) = php::choose(&installed, wanted.version) else {
            continue;
        };
        let version = found.version();
        let of_wanted = match PhpInfo::query(found, &wanted.settings) {
            Ok(info) => unknown_settings(&version, &info, &wanted.settings)
                .into_iter()
                .chain([opcache(&version, info.opcache())])
                .collect(),
            Err(error) => vec![Check::fair(
                OPCACHE,
                "php-query",
                format!("PHP {version} cannot be queried: {error}"),
            )],
        };
        for check in of_wanted {
            // Sites with the same version mostly have the same result, which is then reported once.
            if !checks.iter().any(|other| other.found == check.found) {
                checks.push(check);
            }
        }
    }
    checks
}

/// Reports settings of `ini` that PHP ignores, because it has no settings with these names.
fn unknown_settings(version: &str, info: &PhpInfo, settings: &PhpSettings) -> Option<Check> {
    let unknown: Vec<&str> = settings
        .ini
        .keys()
        .map(String::as_str)
        .filter(|name| !info.has(name))
        .collect();
    (!unknown.is_empty()).then(|| {
        let found = format!(
            "PHP {version} has no settings with these names in `ini`, and ignores them: {}; correct the names, or install \
             the extension that the settings belong to",
            unknown.join(", ")
        );
        Check::fair(PHP, "php-setting-unknown", found)
    })
}

/// Returns the check of OPcache in a version of PHP. `settings`: `None` if the version has no OPcache.
fn opcache(version: &str, settings: Option<OpcacheSettings>) -> Check {
    match settings {
        None => {
            let install = format!("apt install php{version}-opcache");
            let found = format!(
                "PHP {version} has no OPcache, so scripts are compiled again for each request; install it (`{install}`)"
            );
            Check::fair(OPCACHE, "opcache-missing", found).command(install)
        }
        Some(OpcacheSettings { is_enabled: false, .. }) => Check::fair(
            OPCACHE,
            "opcache-off",
            format!(
                "PHP {version}: off, so scripts are compiled again for each request; set opcache.enable = 1 in php.ini, \
                 or php = {{ ini = {{ \"opcache.enable\" = true }} }}"
            ),
        ),
        Some(OpcacheSettings {
            memory, checks_changes, ..
        }) => {
            let changes = match checks_changes {
                true => "changed scripts take effect by themselves",
                false => {
                    "changed scripts take effect after `rocknet php --restart` (opcache.validate_timestamps is off)"
                }
            };
            Check::good(OPCACHE, format!("PHP {version}: on, {memory} MB; {changes}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use rocknet_control::doctor::DoctorVerdict;

    use super::*;

    #[test]
    fn each_state_has_a_verdict_and_a_remedy() {
        let on = OpcacheSettings {
            is_enabled: true,
            memory: "128".to_owned(),
            checks_changes: true,
        };
        let off = OpcacheSettings {
            is_enabled: false,
            ..on.clone()
        };
        let fixed = OpcacheSettings {
            checks_changes: false,
            ..on.clone()
        };
        for (settings, verdict, part) in [
            (Some(on), DoctorVerdict::Good, "PHP 8.2: on, 128 MB"),
            (Some(off), DoctorVerdict::Fair, "opcache.enable"),
            (Some(fixed), DoctorVerdict::Good, "rocknet php --restart"),
            (None, DoctorVerdict::Fair, "apt install php8.2-opcache"),
        ] {
            let check = opcache("8.2", settings);
            assert_eq!(check.verdict, verdict, "{}", check.found);
            assert!(check.found.contains(part), "{}", check.found);
        }
    }
}
