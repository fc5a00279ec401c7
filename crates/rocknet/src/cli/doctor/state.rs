//! Checks that the state folder can be written.

use rocknet::certificates::state_folder;
use rocknet::certificates::storage::FileStorage;

use super::facts::Facts;
use super::verdict::Check;

const SUBJECT: &str = "state";

pub(super) fn check(facts: &Facts<'_>) -> Vec<Check> {
    let path = state_folder(facts.config);
    vec![match FileStorage::new(&path).check_writable() {
        Ok(()) => Check::good(SUBJECT, format!("{} can be written", path.display())),
        Err(error) => {
            let found = format!(
                "{} cannot be written: {error}; write state = \"FOLDER\" below [server], or make this user its owner",
                path.display()
            );
            Check::bad(SUBJECT, "state-not-writable", found).place(path.display())
        }
    }]
}
