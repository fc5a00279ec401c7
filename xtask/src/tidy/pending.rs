//! Folders that do not follow the rules of wording yet. A clean entry is an error, so the list only shrinks.

mod known;

use super::prose::{Finding, Rule};
use known::{PROSE, TYPE_NAMES};
use std::collections::BTreeMap;

/// Number of violations of each rule.
type Counts = BTreeMap<Rule, usize>;

/// Separates violations from tolerated findings, which are the findings in listed folders.
pub struct Pending {
    prose: &'static [&'static str],
    type_names: &'static [&'static str],
    /// Folder whose findings are shown even if it is listed.
    shown: Option<String>,
    violations: Vec<String>,
    /// Findings in listed folders that are to be shown.
    remarks: Vec<String>,
    counts: BTreeMap<String, Counts>,
}

impl Pending {
    /// Uses the lists of this checkout. Findings in the folder `shown` are shown even if it is listed.
    pub fn new(shown: Option<String>) -> Pending {
        Pending::with(PROSE, TYPE_NAMES, shown)
    }

    fn with(prose: &'static [&'static str], type_names: &'static [&'static str], shown: Option<String>) -> Pending {
        Pending {
            prose,
            type_names,
            shown: shown.map(|folder| folder.trim_end_matches('/').to_owned()),
            violations: Vec::new(),
            remarks: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Adds the findings of the prose rules in `file`.
    pub fn prose(&mut self, file: &str, findings: Vec<Finding>) {
        let listed = self.prose.iter().find(|folder| is_below(file, folder));
        for finding in findings {
            let text = format!("{file}:{}: {}", finding.line, finding.text);
            let counted = listed.copied().unwrap_or(crate_of(file));
            self.add(file, counted, listed.is_some(), finding.rule, text);
        }
    }

    /// Adds the violations of the rule of type names in the crate at `folder`.
    pub fn type_names(&mut self, folder: &str, violations: Vec<String>) {
        let listed = self.type_names.contains(&folder);
        for violation in violations {
            self.add(folder, folder, listed, Rule::TypeName, format!("{folder}: {violation}"));
        }
    }

    /// Adds a finding in `file`. `counted`: folder under which it is counted.
    fn add(&mut self, file: &str, counted: &str, is_listed: bool, rule: Rule, text: String) {
        *self
            .counts
            .entry(counted.to_owned())
            .or_default()
            .entry(rule)
            .or_default() += 1;
        if !is_listed {
            self.violations.push(text);
        } else if self.shown.as_ref().is_some_and(|folder| is_below(file, folder)) {
            self.remarks.push(text);
        }
    }

    /// Returns the lines of the counts, after the findings to be shown.
    pub fn report(&self) -> String {
        let mut lines = self.remarks.clone();
        for (folder, counts) in &self.counts {
            let count = |rule| counts.get(&rule).copied().unwrap_or_default();
            lines.push(format!(
                "{folder}: {} openings, {} idioms, {} long sentences, {} wide lines, {} messages, {} type names",
                count(Rule::Opening),
                count(Rule::Idiom),
                count(Rule::Length),
                count(Rule::Width),
                count(Rule::Message),
                count(Rule::TypeName)
            ));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Returns the violations in folders that are not listed, and one for each listed folder that is clean.
    pub fn violations(self) -> Vec<String> {
        let is_clean = |folder: &str, is_of_list: fn(&Rule) -> bool| {
            let counts = self.counts.get(folder);
            counts.is_none_or(|counts| !counts.keys().any(is_of_list))
        };
        let clean = |list: &[&'static str], name: &str, is_of_list: fn(&Rule) -> bool| {
            let clean = list.iter().filter(|folder| is_clean(folder, is_of_list));
            let clean = clean
                .map(|folder| format!("{folder} is clean: remove it from {name} in xtask/src/tidy/pending/known.rs"));
            clean.collect::<Vec<_>>()
        };
        let mut violations = clean(self.prose, "PROSE", |rule| *rule != Rule::TypeName);
        violations.extend(clean(self.type_names, "TYPE_NAMES", |rule| *rule == Rule::TypeName));
        violations.extend(self.violations);
        violations
    }
}

/// Returns true if `file` is `folder` or is below it. The pattern `folder/*.rs` matches only files directly in
/// `folder`.
fn is_below(file: &str, folder: &str) -> bool {
    if let Some(folder) = folder.strip_suffix("/*.rs") {
        return file.rsplit_once('/').is_some_and(|(parent, _)| parent == folder);
    }
    let rest = file.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the folder of the crate to which `file` belongs.
fn crate_of(file: &str) -> &str {
    let parts = if file.starts_with("crates/") || file.starts_with("bench/") {
        2
    } else {
        1
    };
    let end = file.match_indices('/').nth(parts - 1).map_or(file.len(), |(at, _)| at);
    &file[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: Rule) -> Vec<Finding> {
        let text = String::from("text");
        vec![Finding { rule, line: 7, text }]
    }

    #[test]
    fn findings_in_listed_folders_are_only_counted() {
        let mut pending = Pending::with(&["crates/a", "crates/b/src/x.rs"], &["crates/b"], None);
        pending.prose("crates/a/src/lib.rs", finding(Rule::Idiom));
        pending.prose("crates/b/src/x.rs", finding(Rule::Opening));
        pending.type_names("crates/b", vec![String::from("type A")]);
        assert!(
            pending.report().starts_with("crates/a: 0 openings, 1 idioms"),
            "{}",
            pending.report()
        );
        assert_eq!(pending.violations(), Vec::<String>::new());
    }

    #[test]
    fn findings_in_other_folders_are_violations() {
        let mut pending = Pending::with(&[], &[], None);
        pending.prose("crates/ab/src/lib.rs", finding(Rule::Idiom));
        pending.type_names("crates/b", vec![String::from("type A")]);
        let expected = ["crates/ab/src/lib.rs:7: text", "crates/b: type A"];
        assert_eq!(pending.violations(), expected);
    }

    #[test]
    fn clean_entries_are_violations() {
        let mut pending = Pending::with(&["crates/a", "crates/b"], &["crates/a"], None);
        pending.prose("crates/ab/src/lib.rs", Vec::new());
        pending.type_names("crates/b", Vec::new());
        assert_eq!(pending.violations().len(), 3);
        // A finding of one list does not keep an entry of the other.
        let mut pending = Pending::with(&["crates/a"], &["crates/a"], None);
        pending.prose("crates/a/src/lib.rs", finding(Rule::Message));
        assert_eq!(pending.violations().len(), 1);
    }

    #[test]
    fn findings_in_the_shown_folder_are_reported() {
        let mut pending = Pending::with(&["crates/a"], &[], Some(String::from("crates/a/src/")));
        pending.prose("crates/a/src/lib.rs", finding(Rule::Length));
        pending.prose("crates/a/tests/t.rs", finding(Rule::Length));
        let report = pending.report();
        assert!(
            report.contains("lib.rs:7: text") && !report.contains("t.rs"),
            "{report}"
        );
        assert!(pending.violations().is_empty());
    }

    #[test]
    fn files_are_matched_by_folder_and_pattern() {
        let rows = [
            ("a/b.rs", "a", true),
            ("a/b.rs", "a/b.rs", true),
            ("ab/c.rs", "a", false),
            ("a/b.rs", "a/*.rs", true),
            ("a/b/c.rs", "a/*.rs", false),
        ];
        for (file, folder, expected) in rows {
            assert_eq!(is_below(file, folder), expected, "{file} {folder}");
        }
    }

    #[test]
    fn a_file_belongs_to_the_crate_of_its_folder() {
        let rows = [
            ("crates/a/src/lib.rs", "crates/a"),
            ("bench/floor/src/lib.rs", "bench/floor"),
            ("xtask/src/main.rs", "xtask"),
        ];
        for (file, expected) in rows {
            assert_eq!(crate_of(file), expected);
        }
    }
}
