//! Redirects of a site: moved paths and the `Location` of their targets.

use std::fmt;

use rocknet_config::captures::CaptureNames;
use rocknet_config::model::{Pattern, Redirect, RegexPattern};

use super::captures::Captures;
use super::target::{NoHost, RequestTarget, Target, TargetError};
use super::trie::{DuplicatePattern, RouteTrie};

/// Maps moved paths of a site to their targets. Patterns are ranked like those of routes.
///
/// No request can change the host that a redirect leads to, unless the target contains `{host}` or `{authority}`. In
/// the text matched by `*`, characters that have a meaning outside a path are percent-encoded. A target with `{*}` in
/// its authority is refused when the table is built. A path in `Location` never begins with `//` or with `/\`, which
/// browsers treat alike.
#[derive(Debug, Clone, Default)]
pub struct Redirects {
    targets: RouteTrie<RedirectTarget>,
}

#[derive(Debug, Clone)]
struct RedirectTarget {
    to: Target,
    /// Regular expression of the moved paths with the names of its groups; `None` for another kind of pattern.
    regex: Option<(RegexPattern, Box<[String]>)>,
    status: u16,
}

impl Redirects {
    /// Builds the table.
    ///
    /// # Errors
    /// Returns the first redirect that is invalid, with the reason.
    pub fn new(redirects: &[Redirect]) -> Result<Redirects, RedirectError> {
        let mut targets = RouteTrie::new();
        for redirect in redirects {
            let bad = |error| RedirectError {
                from: redirect.from.clone(),
                error,
            };
            if !STATUSES.contains(&redirect.status) {
                return Err(bad(TargetError::BadStatus));
            }
            let names = CaptureNames::of_pattern(&redirect.from);
            let moved = RedirectTarget {
                // A query of the target replaces that of the request.
                to: Target::new(&redirect.to, &names, false).map_err(bad)?,
                regex: match &redirect.from {
                    Pattern::Regex(regex) => Some((regex.clone(), names.names().into())),
                    _ => None,
                },
                status: redirect.status,
            };
            targets
                .insert(&redirect.from, moved)
                .map_err(|DuplicatePattern(_)| bad(TargetError::Duplicate))?;
        }
        Ok(Redirects { targets })
    }

    /// Appends the `Location` value to `location` and returns the status; `None` if the path has not moved. The
    /// request's query is kept unless the target has a query.
    ///
    /// # Errors
    ///
    /// Fails if the target contains the host of the request, and the request names no valid host.
    pub fn find(&self, request: &RequestTarget<'_>, location: &mut Vec<u8>) -> Result<Option<u16>, NoHost> {
        let Some((moved, matched)) = self.targets.find(request.path) else {
            return Ok(None);
        };
        let captures = match &moved.regex {
            None => Captures::of_star(matched.star),
            // The expression has matched the path already, so there are captures.
            Some((regex, names)) => Captures::of_path(regex, request.path, names).unwrap_or_default(),
        };
        moved.to.write(request, &captures, location)?;
        Ok(Some(moved.status))
    }

    /// Returns the number of redirects.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Returns true if there are no redirects.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }
}

/// An invalid redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectError {
    /// Pattern of the redirect.
    pub from: Pattern,
    /// Reason why the redirect is invalid.
    pub error: TargetError,
}

impl fmt::Display for RedirectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "redirect `{}`: {}", self.from, self.error)
    }
}

impl std::error::Error for RedirectError {}

/// Statuses that a redirect can have.
const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

#[cfg(test)]
mod tests;
