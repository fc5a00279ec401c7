//! Tests of `<IfVersion>` for Apache 2.4.

use rocknet_config::model::RegexPattern;

use crate::directive::Directive;

/// First version of Apache 2.4 for general use.
const FIRST: [u32; 3] = [2, 4, 1];

/// Highest number of a release that a configuration can name. It leaves room for future releases.
const MAX_NAMED: u32 = 99;

/// Stands for the last release of Apache 2.4. It counts as later than any release that a configuration names.
const LAST: [u32; 3] = [2, 4, 999];

/// Test of an `<IfVersion>`.
struct VersionTest<'s> {
    operator: &'s str,
    bound: Bound,
    is_negated: bool,
}

/// Right side of a test.
enum Bound {
    Version([u32; 3]),
    Expression(RegexPattern),
}

/// Returns true if an `<IfVersion>` applies to the last release of Apache 2.4.
pub(super) fn is_last(section: &Directive) -> bool {
    VersionTest::of(section).is_some_and(|test| test.applies(LAST))
}

/// Returns true if an `<IfVersion>` applies to no release of Apache 2.4, so that its directives have no effect there.
pub(super) fn is_other(section: &Directive) -> bool {
    let Some(test) = VersionTest::of(section) else {
        return false;
    };
    // A test may name one release, or an expression for a few.
    let mut releases = (FIRST[2]..=MAX_NAMED).chain([LAST[2]]).map(|release| [2, 4, release]);
    !releases.any(|version| test.applies(version))
}

impl<'s> VersionTest<'s> {
    /// Reads the test of a section; `None` if it has no valid form.
    fn of(section: &'s Directive) -> Option<VersionTest<'s>> {
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
        let expression = |text: &str| RegexPattern::new(text, false).ok().map(Bound::Expression);
        let bound = match (operator, quoted) {
            ("~", _) => expression(bound)?,
            ("=" | "==", Some(quoted)) => expression(quoted)?,
            ("=" | "==" | ">" | ">=" | "<" | "<=", _) => Bound::Version(parsed(bound)?),
            _ => return None,
        };
        Some(VersionTest {
            operator,
            bound,
            is_negated,
        })
    }

    fn applies(&self, version: [u32; 3]) -> bool {
        let result = match &self.bound {
            Bound::Expression(regex) => {
                let text = version.map(|number| number.to_string()).join(".");
                regex.matches(text.as_bytes())
            }
            Bound::Version(bound) => match self.operator {
                ">" => version > *bound,
                ">=" => version >= *bound,
                "<" => version < *bound,
                "<=" => version <= *bound,
                _ => version == *bound,
            },
        };
        result != self.is_negated
    }
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
            ("2.4.10", false, false),
            ("= 2.4.200", false, true),
            ("~ ^2\\.4\\.5", false, false),
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
