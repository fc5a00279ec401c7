//! Redirects of a site: moved paths and the `Location` of their targets.

use std::fmt;

use rocknet_config::model::{Pattern, Redirect};

use super::target::{NoHost, RequestTarget, Target, TargetError};
use super::trie::{DuplicatePattern, RouteTrie};

/// Maps moved paths of a site to their targets. Patterns are ranked like those of routes.
///
/// No request can change the host that a redirect leads to, unless the target contains `{host}` or `{authority}`. In
/// the text matched by `*`, characters that have a meaning
/// outside a path are percent-encoded. A target with `{*}` in its authority is refused when the table is built. A path
/// in `Location` never begins with `//` or with `/\`, which browsers treat alike.
#[derive(Debug, Clone, Default)]
pub struct Redirects {
    targets: RouteTrie<RedirectTarget>,
}

#[derive(Debug, Clone)]
struct RedirectTarget {
    to: Target,
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
            let has_star = !matches!(redirect.from, Pattern::Exact(_));
            let to = Target::new(&redirect.to, has_star).map_err(bad)?;
            let moved = RedirectTarget {
                to,
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
        moved.to.write(request, matched.star, location)?;
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
        let (from, star) = match &self.from {
            Pattern::Exact(text) | Pattern::Glob(text) => (text, ""),
            Pattern::Prefix(text) => (text, "*"),
        };
        write!(f, "redirect `{from}{star}`: {}", self.error)
    }
}

impl std::error::Error for RedirectError {}

/// Statuses that a redirect can have.
const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

#[cfg(test)]
mod tests;
