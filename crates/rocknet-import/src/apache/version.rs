//! Tests of `<IfVersion>` for Apache 2.4.

use rocknet_config::model::RegexPattern;

use crate::directive::Directive;

/// First version of Apache 2.4 for general use.
const FIRST: [u32; 3] = [2, 4, 1];

/// Number of the last release of Apache 2.4. It counts as later than any release that a configuration names.
const LAST: [u32; 3] = [2, 4, 999];

/// Returns true if an `<IfVersion>` applies to the last release of Apache 2.4.
pub(super) fn is_last(section: &Directive) -> bool {
    applies(section, LAST).unwrap_or(false)
}

/// Returns true if an `<IfVersion>` applies to no release of Apache 2.4, so that its directives have no effect there.
pub(super) fn is_other(section: &Directive) -> bool {
    [FIRST, LAST].map(|version| applies(section, version)) == [Some(false); 2]
}

/// Returns the result of a test for a version; `None` if the test has no valid form.
fn applies(section: &Directive, version: [u32; 3]) -> Option<bool> {
    let words = section.words();
    let (operator, bound) = match words[..] {
        [operator, bound] => (operator, bound),
        [bound] => ("=", bound),
        _ => return None,
    };
    let (operator, is_negated) = match operator.strip_prefix('!') {
        Some(operator) => (operator, true),
        None => (operator, false),
    };
    let quoted = bound.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
    let result = match (operator, quoted) {
        ("~", _) => matches(bound, version)?,
        ("=" | "==", Some(expression)) => matches(expression, version)?,
        ("=" | "==", None) => version == parsed(bound)?,
        (">", _) => version > parsed(bound)?,
        (">=", _) => version >= parsed(bound)?,
        ("<", _) => version < parsed(bound)?,
        ("<=", _) => version <= parsed(bound)?,
        _ => return None,
    };
    Some(result != is_negated)
}

/// Returns the numbers of a version, with 0 for those that are missing, as in Apache.
fn parsed(text: &str) -> Option<[u32; 3]> {
    let mut version = [0; 3];
    let parts: Vec<&str> = text.split('.').collect();
    for (at, part) in parts.iter().enumerate() {
        *version.get_mut(at)? = part.parse().ok()?;
    }
    Some(version)
}

fn matches(expression: &str, version: [u32; 3]) -> Option<bool> {
    let text = version.map(|number| number.to_string()).join(".");
    let regex = RegexPattern::new(expression, false).ok()?;
    Some(regex.matches(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_by_apache() {
        // (arguments, applies to the last release, applies to no release)
        for (test, is_of_last, is_of_none) in [
            ("< 2.4", false, true),
            (">= 2.4", true, false),
            ("> 2.4", true, false),
            ("<= 2.4", false, true),
            ("<= 2.2.99", false, true),
            ("!< 2.4", true, false),
            ("!>= 2.4", false, true),
            (">= 2.4.26", true, false),
            ("< 2.4.26", false, false),
            ("2.4.10", false, true),
            ("= 2.2", false, true),
            ("~ ^2\\.4", true, false),
            ("= /^2\\.2/", false, true),
            (">= 2.5", false, true),
            (">= two", false, false),
            ("> 2.4.1.2", false, false),
            ("", false, false),
        ] {
            let arguments = test.split_whitespace().map(str::to_owned).collect();
            let section = Directive::new("IfVersion", arguments, 1);
            assert_eq!(
                (is_last(&section), is_other(&section)),
                (is_of_last, is_of_none),
                "{test}"
            );
        }
    }
}
