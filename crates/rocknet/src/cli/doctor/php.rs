//! Checks the versions of PHP that RockNet starts.

use rocknet::gateway::php;

use super::facts::DoctorFacts;
use super::verdict::Check;

const SUBJECT: &str = "PHP";

pub(super) fn check(facts: &DoctorFacts<'_>) -> Vec<Check> {
    if !php::is_wanted(facts.config) {
        return Vec::new();
    }
    let missing = php::missing(facts.config);
    if missing.is_empty() {
        let found: Vec<_> = php::installed().iter().map(php::Installed::version).collect();
        return vec![Check::good(SUBJECT, format!("installed: {}", found.join(", ")))];
    }
    let check = |message: String| {
        // The message has one text in backquotes: the command that installs the version.
        let command = message.split('`').nth(1).map(str::to_owned);
        Check {
            command,
            ..Check::bad(SUBJECT, "php-missing", message)
        }
    };
    missing.into_iter().map(check).collect()
}
