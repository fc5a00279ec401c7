//! Checks that the configured I/O back end is available.

use rocknet::backend::BackendChoice;

use super::facts::DoctorFacts;
use super::verdict::Check;

const SUBJECT: &str = "sockets";

pub(super) fn check(facts: &DoctorFacts<'_>) -> Vec<Check> {
    vec![match BackendChoice::new(facts.config.server.backend) {
        Ok(choice) => Check::good(SUBJECT, choice.to_string()),
        Err(error) => Check::bad(SUBJECT, "backend-unavailable", error),
    }]
}
