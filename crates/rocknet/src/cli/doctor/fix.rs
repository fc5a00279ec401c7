//! `rocknet doctor --fix`: repairs what can be repaired without a decision of the operator.

use std::io;

use rocknet_io::terminal::{StandardStream, is_terminal, read_line};
use serde_json::{Value, json};

use super::super::terminal_text::printable;
use super::super::{Failure, print};
use super::verdict::{Check, Fix};

/// Maximum length of an answer in bytes.
const MAX_ANSWER: usize = 64;

/// A repair with its result.
pub(super) struct Repair {
    code: &'static str,
    action: String,
    /// Description of the change, or the reason of the failure; `None` if the operator refused.
    result: Option<Result<String, String>>,
}

impl Repair {
    /// Returns the repair for the output as JSON.
    pub(super) fn json(&self) -> Value {
        let mut repair = json!({ "code": self.code, "action": self.action });
        match &self.result {
            Some(Ok(done)) => repair["done"] = done.as_str().into(),
            Some(Err(why)) => repair["error"] = why.as_str().into(),
            None => repair["refused"] = true.into(),
        }
        repair
    }

    /// Returns true if the operator has permitted the repair. A repair that has failed may have changed something.
    pub(super) fn was_tried(&self) -> bool {
        self.result.is_some()
    }
}

/// Checks that the options permit repairs: without `yes`, a question needs a terminal and no JSON on standard output.
///
/// # Errors
///
/// A message about the missing option.
pub(super) fn check_options(yes: bool, json: bool) -> Result<(), Failure> {
    if !yes && (json || !is_terminal(StandardStream::Input)) {
        let message =
            "`--fix` asks before each repair, which needs a terminal: add `--yes` to repair without questions";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(())
}

/// Carries out the repairs of the checks, each after a question unless `yes` is set. Prints each result, unless
/// `quiet` is set.
pub(super) fn repair(checks: &[Check], yes: bool, quiet: bool) -> Vec<Repair> {
    let offered = checks
        .iter()
        .filter_map(|check| check.fix.as_ref().map(|fix| (check.code, fix)));
    let mut repairs = Vec::new();
    for (code, fix) in offered {
        let is_permitted = yes || is_confirmed(fix);
        let result = is_permitted.then(|| (fix.apply)());
        if !quiet {
            match &result {
                Some(Ok(done)) => print(format_args!("repaired: {}\n", printable(done))),
                Some(Err(why)) => print(format_args!("not repaired [{code}]: {}\n", printable(why))),
                None => print(format_args!("left as it is [{code}]\n")),
            }
        }
        repairs.push(Repair {
            code,
            action: fix.action.clone(),
            result,
        });
    }
    if repairs.is_empty() && !quiet {
        print("nothing here can be repaired without a decision of yours: see the commands above\n");
    }
    repairs
}

/// Prints a question about a repair, and returns true if the answer is yes.
fn is_confirmed(fix: &Fix) -> bool {
    print(format_args!("{}? [y/N] ", printable(&fix.action)));
    let answer = read_line(&mut io::stdin().lock(), MAX_ANSWER).unwrap_or_default();
    let answer = String::from_utf8_lossy(&answer).trim().to_ascii_lowercase();
    matches!(answer.as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_that_has_failed_was_tried() {
        let check = |result: Result<String, String>| Check::bad("x", "y", "z").fix("repair it", move || result.clone());
        for result in [Ok("done".to_owned()), Err("half done".to_owned())] {
            let repairs = repair(&[check(result)], true, true);
            assert!(repairs.iter().all(Repair::was_tried) && repairs.len() == 1);
        }
        let refused = Repair {
            code: "y",
            action: String::new(),
            result: None,
        };
        assert!(!refused.was_tried());
    }
}
