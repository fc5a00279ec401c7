//! Routing tables, which map a host name to its site, and a path to its route, redirect or rule.
//!
//! [`HostTable`] maps host names of a listener to sites, [`RouteTrie`] maps paths of a site to routes, and
//! [`Redirects`] maps moved paths to their new locations. [`Rules`] are applied to requests before the routes. All
//! tables are built once from a checked configuration and then only read, so workers share them without a lock. Lookups
//! of hosts and routes do not allocate. Their cost does not depend on the number of sites and routes, except that globs
//! and regular expressions are compared one by one.
//!
//! ```
//! use rocknet_config::model::Pattern;
//! use rocknet_routing::RouteTrie;
//!
//! let mut routes = RouteTrie::new();
//! routes.insert(&Pattern::Exact("/api".into()), "exact").unwrap();
//! routes.insert(&Pattern::Prefix("/api/".into()), "prefix").unwrap();
//! let (route, matched) = routes.find("/api/users").unwrap();
//! assert_eq!((*route, matched.star), ("prefix", 5..10));
//! ```
#![forbid(unsafe_code)]

mod captures;
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
pub use rules::{FileRules, LookupError, RequestFacts, RuleError, RuleOutcome, Rules};
pub use target::{NoHost, RequestTarget, TargetError};
pub use trie::{DuplicatePattern, MatchKind, RouteMatch, RouteTrie};
