//! Rules of a site: conditions on requests, and the actions of the rules that match, in the order of the configuration.

mod condition;
mod facts;
mod file_rules;

use std::borrow::Cow;
use std::fmt;

use rocknet_config::captures::CaptureNames;
use rocknet_config::model::{self, RuleAction};
use rocknet_config::template::{Scope, Template, Values};
use rocknet_proto::request::{Request, split_target};
use rocknet_proto::semantics::safe_path::{PathError, SafePath};

pub use self::condition::RequestConditions;
use self::condition::{Matcher, PathMatch, UnknownPath};
pub use self::facts::{LookupError, RequestFacts};
pub use self::file_rules::FileRules;
use super::target::{NoHost, RequestTarget, Target, TargetError};

/// The rules of a site, which apply before its routes.
#[derive(Debug)]
pub struct Rules(Box<[Rule]>);

/// The result of applying the rules to a request.
#[derive(Debug, PartialEq, Eq)]
pub enum RuleOutcome {
    /// No rule changed the request.
    Untouched,
    /// The rules rewrote the target. Contains the new path, and the query after `?` if there is one.
    Rewritten(Vec<u8>),
    /// A rule redirects the request.
    Redirect {
        /// Status code.
        status: u16,
        /// Value of `Location`.
        location: Vec<u8>,
    },
    /// A rule sends a response.
    Respond {
        /// Status code.
        status: u16,
        /// Response body; `None`: the page for the status.
        body: Option<Template>,
    },
    /// The outcome depends on what this decoded path leads to on disk, which is not known without waiting. The caller
    /// looks up the path in the blocking pool, and then applies the rules again.
    NeedsLookup(String),
    /// A rule needs the host of the request, which names none.
    NoHost,
}

/// A rule with an invalid target or response body.
#[derive(Debug)]
pub struct RuleError {
    /// Number of the rule, from 1.
    number: usize,
    error: TargetError,
}

#[derive(Debug)]
struct Rule {
    when: Matcher,
    /// Exceptions: the rule does not apply if one of them matches.
    unless: Box<[Matcher]>,
    action: Action,
    /// True if no later rule is applied once this rule matches.
    last: bool,
}

#[derive(Debug)]
enum Action {
    /// Leaves the request as it is; with `last`, the remaining rules are skipped.
    Pass,
    Rewrite(Target),
    Redirect {
        to: Target,
        status: u16,
    },
    Respond {
        status: u16,
        body: Option<Template>,
    },
}

/// The target of the request after the rules that were applied. Later rules are matched against this target.
struct CurrentTarget<'r> {
    /// Decoded and normalized path.
    path: Cow<'r, str>,
    /// Rewritten path and query; `None` if path and query are as received.
    target: Option<Vec<u8>>,
}

impl Rules {
    /// Prepares rules; `None` for an empty list.
    ///
    /// # Errors
    /// Returns the first rule whose target or response body is invalid.
    pub fn new(rules: &[model::Rule]) -> Result<Option<Rules>, RuleError> {
        if rules.is_empty() {
            return Ok(None);
        }
        let ready = rules.iter().zip(1..).map(|(rule, number)| {
            let bad = |error| RuleError { number, error };
            Rule::new(rule).map_err(bad)
        });
        Ok(Some(Rules(ready.collect::<Result<_, _>>()?)))
    }

    /// Returns true if a rewrite has values of the request, so that its result is not known without them.
    pub fn has_values(&self) -> bool {
        let has_values = |rule: &Rule| matches!(&rule.action, Action::Rewrite(to) if to.has_values());
        self.0.iter().any(has_values)
    }

    /// Applies the rules to a request. `values`: values of the request for placeholders.
    pub fn apply(&self, request: &Request<'_>, facts: &dyn RequestFacts, values: &dyn Values) -> RuleOutcome {
        let Some(path) = decoded(request.path) else {
            return RuleOutcome::Untouched;
        };
        let mut current = CurrentTarget { path, target: None };
        for rule in &self.0 {
            let (raw_path, query) = current.raw(request);
            let matched = match rule.matches(request, &current.path, query, facts) {
                Ok(Some(matched)) => matched,
                Ok(None) => continue,
                Err(unknown) if unknown.error == LookupError::WouldBlock => {
                    return RuleOutcome::NeedsLookup(unknown.path);
                }
                Err(_) => {
                    let (status, body) = (SERVICE_UNAVAILABLE, None);
                    return RuleOutcome::Respond { status, body };
                }
            };
            let target = RequestTarget {
                path: &current.path,
                raw_path,
                query,
                values,
            };
            let captures = || rule.when.captures(&matched, request, &current.path, query);
            let mut written = Vec::new();
            match &rule.action {
                Action::Pass => {}
                Action::Rewrite(to) => {
                    if let Err(NoHost) = to.write(&target, &captures(), &mut written) {
                        return RuleOutcome::NoHost;
                    }
                    // The route lookup refuses a target that is not a valid path, so no further rule is applied.
                    let path = decoded(split_target(&written).0).map(Cow::into_owned);
                    let is_path = path.is_some();
                    current = CurrentTarget {
                        path: Cow::Owned(path.unwrap_or_default()),
                        target: Some(written),
                    };
                    if !is_path {
                        break;
                    }
                }
                Action::Redirect { to, status } => {
                    if let Err(NoHost) = to.write(&target, &captures(), &mut written) {
                        return RuleOutcome::NoHost;
                    }
                    let (status, location) = (*status, written);
                    return RuleOutcome::Redirect { status, location };
                }
                Action::Respond { status, body } => {
                    let (status, body) = (*status, body.clone());
                    return RuleOutcome::Respond { status, body };
                }
            }
            if rule.last {
                break;
            }
        }
        current.target.map_or(RuleOutcome::Untouched, RuleOutcome::Rewritten)
    }
}

/// Status of the response if a file cannot be looked up.
const SERVICE_UNAVAILABLE: u16 = 503;

/// Decodes a path for matching; `None` if the path is refused regardless of the rules.
fn decoded(raw: &[u8]) -> Option<Cow<'_, str>> {
    match SafePath::parse(raw) {
        Ok(path) => Some(path.into_str()),
        // No file can have such a path, for example one with an encoded slash, but a rule may rewrite it.
        Err(PathError::Unmatchable) => SafePath::for_rules(raw).ok().map(Cow::Owned),
        Err(_) => None,
    }
}

impl CurrentTarget<'_> {
    /// Returns path and query, not decoded: rewritten or as received.
    fn raw<'a>(&'a self, request: &Request<'a>) -> (&'a [u8], Option<&'a [u8]>) {
        match &self.target {
            Some(target) => split_target(target),
            None => (request.path, request.query),
        }
    }
}

impl Rule {
    fn new(rule: &model::Rule) -> Result<Rule, TargetError> {
        let names = CaptureNames::of_rule(&rule.when);
        Ok(Rule {
            when: Matcher::new(&rule.when, names.names()),
            unless: rule.unless.iter().map(|when| Matcher::new(when, &[])).collect(),
            action: match &rule.action {
                RuleAction::Pass => Action::Pass,
                // A rewrite adds the query of the request to a query of the target. A redirect does not.
                RuleAction::Rewrite(to) => Action::Rewrite(Target::new(to, &names, true)?),
                RuleAction::Redirect { to, status } => Action::Redirect {
                    to: Target::new(to, &names, false)?,
                    status: *status,
                },
                RuleAction::Respond { status, body } => Action::Respond {
                    status: *status,
                    body: match body {
                        None => None,
                        Some(text) => {
                            let body = Template::parse(text, Scope::Request);
                            Some(body.map_err(|_| TargetError::BadPlaceholder)?)
                        }
                    },
                },
            },
            last: rule.last,
        })
    }

    /// Returns the match of the path; `None` if a condition does not hold, or if an exception applies.
    fn matches(
        &self,
        request: &Request<'_>,
        path: &str,
        query: Option<&[u8]>,
        facts: &dyn RequestFacts,
    ) -> Result<Option<PathMatch<'_>>, UnknownPath> {
        let Some(matched) = self.when.matches(request, path, query, facts)? else {
            return Ok(None);
        };
        for exception in &self.unless {
            if exception.matches(request, path, query, facts)?.is_some() {
                return Ok(None);
            }
        }
        Ok(Some(matched))
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}: {}", self.number, self.error)
    }
}

impl std::error::Error for RuleError {}

#[cfg(test)]
mod tests;
