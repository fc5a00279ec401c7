//! The checks of `rocknet doctor`, in the order of the output. A new check is a file of this folder and a line here.

use super::facts::DoctorFacts;
use super::verdict::Check;
use super::{
    accounts, bans, certificates, clock, folders, local_ca, names, open_files, php, php_settings, ports, quic,
    sandbox_support, sockets,
};

/// A check: returns its results, or nothing if the configuration does not need it.
type CheckFn = fn(&DoctorFacts<'_>) -> Vec<Check>;

/// All checks after that of the configuration, which supplies the facts.
const CHECKS: &[CheckFn] = &[
    ports::check,
    quic::check,
    certificates::check,
    folders::check,
    accounts::check,
    names::check,
    local_ca::check,
    sockets::check,
    sandbox_support::check,
    php::check,
    php_settings::check,
    bans::check,
    open_files::check,
    clock::check,
];

/// Runs all checks.
pub fn run(facts: &DoctorFacts<'_>) -> Vec<Check> {
    CHECKS.iter().flat_map(|check| check(facts)).collect()
}
