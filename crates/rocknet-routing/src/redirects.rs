//! The paths of a site that have moved, and the `Location` that says where to.

use std::fmt;

use rocknet_config::model::{Pattern, Redirect};

use super::target::{RequestTarget, Target, TargetError};
use super::trie::{DuplicatePattern, RouteTrie};

/// Where each moved path of a site leads, ranked as routes are.
///
/// Nothing a client sends can turn a redirect to another host: what the `*` took is percent-encoded where a URL would
/// read it as anything but path, it cannot stand in the target's authority (refused when the table is built), and a
/// path never begins with `//`, nor with `/\`, which browsers take for the same.
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

    /// Appends the `Location` to `location` and gives the status, if the path has moved. The request's query goes along
    /// unless the target has one of its own.
    pub fn find(&self, request: &RequestTarget<'_>, location: &mut Vec<u8>) -> Option<u16> {
        let (moved, matched) = self.targets.find(request.path)?;
        moved.to.write(request, matched.star, location);
        Some(moved.status)
    }

    pub fn len(&self) -> usize {
        self.targets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }
}

/// A redirect that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectError {
    pub from: Pattern,
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

const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

#[cfg(test)]
mod tests;
