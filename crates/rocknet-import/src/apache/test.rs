//! Translates `RewriteCond` to conditions of rules.

use crate::condition::{Condition, Conditions, both};
use crate::directive::Directive;
use crate::value::Value;

use super::accuracy::{Accuracy, OF_FILES, Tests};
use super::pcre::normalized;
use super::variable::{equal, matching};

/// Maximum number of alternatives of one rule, each of which becomes a rule of its own. Conditions with `[OR]` multiply
/// them, so without a limit, a short file could have a very long result.
const MAX_ALTERNATIVES: usize = 16;

/// Use of the groups of a rule's last condition. The target of the rule refers to them by `%1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConditionGroups {
    /// The groups get names, to which the translated target refers.
    Named,
    Unused,
}

/// Returns the conditions under which a rule applies. Returns `None` if a condition has no counterpart. `is_in_folder`:
/// true for a rule of a folder.
pub(super) fn alternatives(conditions: &[Directive], groups: ConditionGroups, is_in_folder: bool) -> Option<Tests> {
    let names_groups = groups == ConditionGroups::Named;
    let mut all = Tests::exact(vec![Conditions::new()]);
    // Alternatives that `[OR]` joins with the next condition.
    let mut either: Option<Vec<Conditions>> = None;
    for (at, condition) in conditions.iter().enumerate() {
        let is_last = at + 1 == conditions.len();
        let flags = CondFlags::read(condition.argument(2))?;
        let found = one(condition, &flags, names_groups && is_last, is_in_folder)?;
        all.accuracy = all.accuracy.and(found.accuracy);
        // Any other difference takes precedence over `OF_FILES`, which `visible_difference` leaves out.
        all.difference = all.visible_difference().or(found.difference).or(all.difference);
        let joined = match either.take() {
            Some(before) => join(before, found.alternatives),
            None => found.alternatives,
        };
        if flags.is_or && !is_last {
            either = Some(joined);
        } else {
            all.alternatives = both(&all.alternatives, &joined);
        }
        if all.alternatives.len() > MAX_ALTERNATIVES {
            return None;
        }
    }
    Some(all)
}

/// Flags of a condition, such as `[NC,OR]`.
struct CondFlags {
    ignores_case: bool,
    is_or: bool,
}

impl CondFlags {
    /// Returns the flags; `None` for a flag that is not known.
    fn read(text: &str) -> Option<CondFlags> {
        let mut flags = CondFlags {
            ignores_case: false,
            is_or: false,
        };
        let list = text.trim().trim_start_matches('[').trim_end_matches(']').split(',');
        for flag in list.map(str::trim).filter(|flag| !flag.is_empty()) {
            match flag.to_ascii_lowercase().as_str() {
                "nc" | "nocase" => flags.ignores_case = true,
                "or" | "ornext" => flags.is_or = true,
                "nv" | "novary" => {}
                _ => return None,
            }
        }
        Some(flags)
    }
}

/// Joins alternatives. An alternative is merged with the last one before it if one condition can express both.
fn join(mut left: Vec<Conditions>, right: Vec<Conditions>) -> Vec<Conditions> {
    for alternative in right {
        let merged = match (left.last().map(Vec::as_slice), &alternative[..]) {
            (Some([a]), [b]) if !a.is_negated && !b.is_negated => merge(a, b),
            _ => None,
        };
        match (merged, left.last_mut()) {
            (Some(merged), Some(last)) => *last = vec![merged],
            _ => left.push(alternative),
        }
    }
    left
}

/// Returns a condition for two of the same kind, one of which must hold; `None` if there is no such condition.
fn merge(a: &Condition, b: &Condition) -> Option<Condition> {
    let ([(key, left)], [(other, right)]) = (&a.keys[..], &b.keys[..]) else {
        return None;
    };
    if key != other {
        return None;
    }
    if let (Value::Table(left), Value::Table(right)) = (left, right) {
        let ([(name, Value::Text(left))], [(other, Value::Text(right))]) = (&left[..], &right[..]) else {
            return None;
        };
        let mark = |text: &str| match (text.strip_prefix("~*"), text.strip_prefix('~')) {
            (Some(rest), _) => Some(("~*", rest.to_owned())),
            (None, Some(rest)) => Some(("~", rest.to_owned())),
            (None, None) => None,
        };
        let ((mark_left, left), (mark_right, right)) = (mark(left)?, mark(right)?);
        // The joined expression must not have two groups of the same name.
        let is_same = name.eq_ignore_ascii_case(other) && mark_left == mark_right && !left.contains("(?<");
        return is_same.then(|| Condition::entry(key, name, format!("{mark_left}{left}|{right}")));
    }
    if !matches!(*key, "path" | "host" | "method" | "client" | "exists") {
        return None;
    }
    let list = |value: &Value| match value {
        Value::List(list) => list.clone(),
        single => vec![single.clone()],
    };
    let mut values = list(left);
    values.extend(list(right));
    Some(Condition::new(key, Value::one_or_list(values)))
}

/// Translates one condition.
fn one(condition: &Directive, flags: &CondFlags, names_groups: bool, is_in_folder: bool) -> Option<Tests> {
    let (subject, pattern) = (condition.argument(0), condition.argument(1));
    let (is_negated, pattern) = match pattern.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    if matches!(pattern, "-f" | "-d" | "-l" | "-s" | "-F" | "-U") {
        return existence(subject, pattern, is_negated, is_in_folder);
    }
    // Comparisons such as `>12` and `-ge 12`, and further tests for files.
    if pattern.starts_with(['<', '>']) || pattern.starts_with('-') {
        return None;
    }
    if let Some(text) = pattern.strip_prefix('=') {
        return equal(subject, text.trim_matches('"'), flags.ignores_case, is_negated);
    }
    matching(
        subject,
        &normalized(pattern),
        flags.ignores_case,
        is_negated,
        names_groups,
    )
}

/// Translates a test for a file, folder or link.
fn existence(subject: &str, test: &str, is_negated: bool, is_in_folder: bool) -> Option<Tests> {
    let kinds: &[&str] = match (test, is_negated) {
        ("-f" | "-s" | "-F", false) => &["file"],
        ("-f" | "-s" | "-F", true) => &["folder", "nothing"],
        ("-d", false) => &["folder"],
        ("-d", true) => &["file", "nothing"],
        // For `exists`, a link counts as the file or folder that it leads to, so no path passes a test for a link.
        ("-l", _) => {
            let found = Tests::exact(if is_negated {
                vec![Conditions::new()]
            } else {
                Vec::new()
            });
            return Some(found.differing(Accuracy::MayMiss.negated_if(is_negated), OF_FILES));
        }
        _ => return None,
    };
    let mut condition = Condition::new("exists", Value::texts(kinds.iter().copied()));
    // In the rules of a host, Apache does not know the file yet, and `REQUEST_FILENAME` is the path of the request. The
    // translation tests the file, so it holds for more requests. In a folder it holds for fewer: see `OF_FILES`.
    let is_early = !is_in_folder && subject.starts_with("%{REQUEST_FILENAME}");
    let accuracy = Accuracy::of(is_early, !is_early);
    let path = subject
        .replace("%{DOCUMENT_ROOT}/%{REQUEST_URI}", "{path}")
        .replace("%{DOCUMENT_ROOT}%{REQUEST_URI}", "{path}")
        .replace("%{REQUEST_FILENAME}", "{path}")
        .replace("%{DOCUMENT_ROOT}", "")
        .replace("/%{REQUEST_URI}", "{path}")
        .replace("%{REQUEST_URI}", "{path}")
        .replace("\\.", ".");
    if path != "{path}" {
        if path.contains(['%', '$']) || !(path.starts_with('/') || path.starts_with("{path}")) {
            return None;
        }
        condition.keys.push(("exists_at", Value::Text(path)));
    }
    Some(Tests::of(condition).differing(accuracy.negated_if(is_negated), OF_FILES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition;

    fn written(text: &str) -> Option<Vec<String>> {
        let tree = super::super::read(text).unwrap();
        let written = |conditions: &Conditions| {
            let keys = condition::keys(conditions).unwrap().into_iter();
            let mut out = String::new();
            Value::Table(keys.map(|(key, value)| (key.to_owned(), value)).collect()).write(&mut out);
            out.replace('"', "'")
        };
        let groups = match text.contains("groups") {
            true => ConditionGroups::Named,
            false => ConditionGroups::Unused,
        };
        alternatives(&tree, groups, true).map(|all| all.alternatives.iter().map(written).collect())
    }

    #[test]
    fn conditions_become_keys() {
        for (text, expected) in [
            (
                "%{HTTP_USER_AGENT} !^Good",
                "{ unless = { header = { User-Agent = '~^Good' } } }",
            ),
            (
                "%{HTTP_USER_AGENT} ^$",
                "{ unless = { header = { User-Agent = '~.' } } }",
            ),
            (
                "%{HTTP_USER_AGENT} bot [nocase]",
                "{ header = { User-Agent = '~*bot' } }",
            ),
            ("%{HTTP_HOST} !^www\\. [NC]", "{ unless = { host = '~*^www\\\\.' } }"),
            ("%{HTTP_HOST} ^A\\.test$", "{ host = 'a.test' }"),
            ("%{REQUEST_URI} !^/static/", "{ unless = { path = '~^/static/' } }"),
            (
                "%{REQUEST_METHOD} !^(GET|HEAD)$",
                "{ unless = { method = ['GET', 'HEAD'] } }",
            ),
            (
                "%{REMOTE_ADDR} !^192\\.0\\.2\\.1$",
                "{ unless = { client = '192.0.2.1' } }",
            ),
            (
                "%{REQUEST_FILENAME}.html -f",
                "{ exists = 'file', exists_at = '{path}.html' }",
            ),
            ("%{QUERY_STRING} ^id=([0-9]+)$", "{ query = { id = '~^([0-9]+)$' } }"),
            ("%{ENV:REDIRECT_STATUS} =\"\"", "{ }"),
            (
                "%{HTTP:X-Forwarded-Proto} =http",
                "{ header = { X-Forwarded-Proto = '~^http$' } }",
            ),
        ] {
            let found = written(&format!("RewriteCond {text}")).unwrap();
            assert_eq!(found, [expected.replace("{ }", "{  }").as_str()], "{text}");
        }
        for text in [
            "%{QUERY_STRING} <script",
            "%{TIME_HOUR} >12",
            "%{HTTP_X} (?!a)",
            "%{HTTP_X} a [unknown]",
        ] {
            assert_eq!(written(&format!("RewriteCond {text}")), None, "{text}");
        }
        assert_eq!(written("RewriteCond %{ENV:REDIRECT_STATUS} 200"), Some(Vec::new()));
    }

    #[test]
    fn alternatives_are_joined_if_one_condition_can_hold_them() {
        let text = "RewriteCond %{HTTP_USER_AGENT} ^a [OR]\nRewriteCond %{HTTP_USER_AGENT} ^b\nRewriteCond %{REQUEST_FILENAME} \
                    -f [ornext]\nRewriteCond %{REQUEST_FILENAME} -d\n";
        assert_eq!(
            written(text).unwrap(),
            ["{ header = { User-Agent = '~^a|^b' }, exists = ['file', 'folder'] }"]
        );
        let text = "RewriteCond %{HTTP_REFERER} a [OR]\nRewriteCond %{HTTPS} off\n";
        assert_eq!(
            written(text).unwrap(),
            ["{ header = { Referer = '~a' } }", "{ scheme = 'http' }"]
        );
    }
}
