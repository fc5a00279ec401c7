//! The paths of a site that have moved, and the `Location` that says where to.

use std::fmt;

use rocknet_config::model::{Pattern, Redirect};

use super::target::{Asked, Problem, Target};
use super::trie::{DuplicatePattern, RouteTrie};

/// Where each moved path of a site leads, ranked as routes are.
///
/// Nothing a client sends can turn a redirect to another host: what the `*` took is percent-encoded where a URL would
/// read it as anything but path, it cannot stand in the target's authority (refused when the table is built), and a
/// path never begins with `//`, nor with `/\`, which browsers take for the same.
#[derive(Debug, Clone, Default)]
pub struct Redirects {
    targets: RouteTrie<Moved>,
}

#[derive(Debug, Clone)]
struct Moved {
    to: Target,
    status: u16,
}

impl Redirects {
    pub fn new(redirects: &[Redirect]) -> Result<Redirects, BadRedirect> {
        let mut targets = RouteTrie::new();
        for redirect in redirects {
            let bad = |problem| BadRedirect {
                from: redirect.from.clone(),
                problem,
            };
            if !STATUSES.contains(&redirect.status) {
                return Err(bad(Problem::BadStatus));
            }
            let has_star = !matches!(redirect.from, Pattern::Exact(_));
            let to = Target::new(&redirect.to, has_star).map_err(bad)?;
            let moved = Moved {
                to,
                status: redirect.status,
            };
            targets
                .insert(&redirect.from, moved)
                .map_err(|DuplicatePattern(_)| bad(Problem::Twice))?;
        }
        Ok(Redirects { targets })
    }

    /// Appends the `Location` to `location` and gives the status, if the path has moved. The request's query goes along
    /// unless the target has one of its own.
    pub fn find(&self, asked: &Asked<'_>, location: &mut Vec<u8>) -> Option<u16> {
        let (moved, matched) = self.targets.find(asked.path)?;
        moved.to.write(asked, matched.star, location);
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
pub struct BadRedirect {
    pub from: Pattern,
    pub problem: Problem,
}

impl fmt::Display for BadRedirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, star) = match &self.from {
            Pattern::Exact(text) | Pattern::Glob(text) => (text, ""),
            Pattern::Prefix(text) => (text, "*"),
        };
        write!(f, "redirect `{from}{star}`: {}", self.problem)
    }
}

impl std::error::Error for BadRedirect {}

const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

#[cfg(test)]
mod tests;
