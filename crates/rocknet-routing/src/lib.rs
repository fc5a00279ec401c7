//! From a name and a path to what serves them, at a cost that knows nothing of how many sites and routes there are.
//!
//! [`HostTable`] finds the site of a listener by host name, [`RouteTrie`] the route of a site by path, and [`Redirects`]
//! the place a path has moved to. All three are built once from a checked configuration and only read afterwards, so
//! that workers share them without a lock; none allocates while it looks.
#![forbid(unsafe_code)]

pub mod glob;
pub mod hosts;
pub mod redirects;
pub mod rules;
pub mod target;
pub mod trie;
mod wildcard;

pub use glob::Glob;
pub use hosts::{DuplicateHost, HostTable};
pub use redirects::{RedirectError, Redirects};
pub use rules::{RuleError, RuleOutcome, Rules};
pub use target::{RequestTarget, TargetError};
pub use trie::{DuplicatePattern, MatchKind, RouteMatch, RouteTrie};
