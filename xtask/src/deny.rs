//! Checks licences, sources and advisories of the dependencies with cargo-deny, or only the licences without it.

use crate::Failure;
use crate::command::{cargo, find, output_alone, run as run_command};
use serde_json::Value;

/// Accepted licences, the same as in `deny.toml`. An expression passes when one arm of each `OR` does.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

pub fn run() -> Result<(), Failure> {
    if find("cargo-deny").is_none() {
        return Err("cargo-deny is not installed: run cargo install --locked cargo-deny (takes a few minutes)".into());
    }
    run_command(cargo().args(["deny", "--workspace", "check"]))
}

/// Checks without cargo-deny and without a network that every package names an accepted licence.
pub fn licences() -> Result<(), Failure> {
    let text = output_alone(cargo().args(["metadata", "--format-version", "1", "--locked", "--quiet"]))?;
    let metadata: Value = serde_json::from_str(text.trim())?;
    let packages = metadata["packages"]
        .as_array()
        .ok_or("cargo metadata lists no packages")?;
    let mut refused = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let licence = package["license"].as_str().unwrap_or_default();
        if !allowed(licence) {
            refused.push(format!("{name}: {licence:?}"));
        }
    }
    if refused.is_empty() {
        println!("{} packages, every licence accepted", packages.len());
        Ok(())
    } else {
        Err(format!(
            "licences not in the list of xtask/src/deny.rs:\n  {}",
            refused.join("\n  ")
        )
        .into())
    }
}

/// Returns true if the accepted licences satisfy an SPDX expression. `AND` binds closer than `OR`; old crates write `/`
/// for `OR`.
fn allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let Some(open) = expression.rfind('(') else {
        return expression
            .split(" OR ")
            .any(|arm| arm.split(" AND ").all(|one| ALLOWED.contains(&one.trim())));
    };
    // The innermost parentheses are evaluated first. An accepted or a refused licence replaces them.
    let Some(length) = expression[open..].find(')') else {
        return false;
    };
    let word = if allowed(&expression[open + 1..open + length]) {
        ALLOWED[0]
    } else {
        "refused"
    };
    allowed(&format!(
        "{}{word}{}",
        &expression[..open],
        &expression[open + length + 1..]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_allowed_if_accepted_licences_satisfy_it() {
        let rows = [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0 OR AGPL-3.0", false),
            ("MIT/Apache-2.0", true),
            ("MIT AND GPL-3.0", false),
            ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(MIT OR Apache-2.0) AND GPL-3.0", false),
            ("MIT AND (GPL-3.0 OR (LGPL-3.0 OR ISC))", true),
            ("MIT AND (GPL-3.0", false),
            ("", false),
        ];
        for (expression, expected) in rows {
            assert_eq!(allowed(expression), expected, "{expression:?}");
        }
    }

    #[test]
    fn deny_toml_names_the_same_licences() {
        let text = std::fs::read_to_string(crate::repository::root().join("deny.toml")).expect("deny.toml");
        for licence in ALLOWED {
            assert!(text.contains(&format!("\"{licence}\"")), "deny.toml lacks {licence}");
        }
    }
}
