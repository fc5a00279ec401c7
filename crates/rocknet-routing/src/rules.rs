//! Rules of a site: conditions on requests, and the actions of the rules that match, in the order of the configuration.

use std::fmt;
use std::ops::Range;

use rocknet_config::model::{self, Conditions, HostPattern, Pattern, RuleAction};
use rocknet_proto::request::{Request, split_target};
use rocknet_proto::semantics::safe_path::{PathError, SafePath};

use super::glob::Glob;
use super::target::{RequestTarget, Target, TargetError};
use super::wildcard::Wildcard;

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
        body: Option<Box<str>>,
    },
}

/// A rule with an invalid target.
#[derive(Debug)]
pub struct RuleError {
    /// Number of the rule, from 1.
    number: usize,
    error: TargetError,
}

#[derive(Debug)]
struct Rule {
    paths: Box<[PathPattern]>,
    hosts: Box<[HostPattern]>,
    methods: Box<[Box<[u8]>]>,
    headers: Box<[(Box<[u8]>, Wildcard)]>,
    cookies: Box<[(Box<[u8]>, Wildcard)]>,
    query: Box<[(Box<[u8]>, Wildcard)]>,
    /// True if the request must use TLS, false if it must not; `None` if both are accepted.
    secure: Option<bool>,
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
        body: Option<Box<str>>,
    },
}

#[derive(Debug)]
enum PathPattern {
    Exact(Box<str>),
    Prefix(Box<str>),
    Glob(Glob),
}

/// The target of the request after the rules that were applied. Later rules are matched against this target.
struct CurrentTarget {
    /// Decoded and normalized path.
    path: String,
    /// Rewritten path and query; `None` if path and query are as received.
    target: Option<Vec<u8>>,
}

impl Rules {
    /// Prepares rules; `None` for an empty list.
    ///
    /// # Errors
    /// Returns the first rule whose target is invalid.
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

    /// Applies the rules to a request. `is_secure`: true if the request was received over TLS.
    pub fn apply(&self, request: &Request<'_>, is_secure: bool) -> RuleOutcome {
        let Some(path) = decoded(request.path) else {
            return RuleOutcome::Untouched;
        };
        let mut current = CurrentTarget { path, target: None };
        for rule in &self.0 {
            let (raw_path, query) = current.raw(request);
            let Some(star) = rule.matches(request, &current.path, query, is_secure) else {
                continue;
            };
            let target = RequestTarget {
                path: &current.path,
                raw_path,
                query,
            };
            let mut written = Vec::new();
            match &rule.action {
                Action::Pass => {}
                Action::Rewrite(to) => {
                    to.write(&target, star, &mut written);
                    // The route lookup refuses a target that is not a valid path, so no further rule is applied.
                    let path = decoded(split_target(&written).0);
                    let is_path = path.is_some();
                    current = CurrentTarget {
                        path: path.unwrap_or_default(),
                        target: Some(written),
                    };
                    if !is_path {
                        break;
                    }
                }
                Action::Redirect { to, status } => {
                    to.write(&target, star, &mut written);
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

/// Decodes a path for matching; `None` if the path is refused regardless of the rules.
fn decoded(raw: &[u8]) -> Option<String> {
    match SafePath::parse(raw) {
        Ok(path) => Some(path.as_str().to_owned()),
        // No file can have such a path, for example one with an encoded slash, but a rule may rewrite it.
        Err(PathError::Unmatchable) => SafePath::for_rules(raw).ok(),
        Err(_) => None,
    }
}

impl CurrentTarget {
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
        let Conditions {
            paths,
            hosts,
            methods,
            headers,
            cookies,
            query,
            secure,
        } = &rule.when;
        // An exact path has no star, so a request that matches it has no text for `{*}`.
        let has_star = !paths.iter().any(|path| matches!(path, Pattern::Exact(_)));
        let patterns = |all: &[(String, String)], folds_case| {
            all.iter()
                .map(|(name, pattern)| (name.as_bytes().into(), Wildcard::new(pattern, folds_case)))
                .collect()
        };
        Ok(Rule {
            paths: paths.iter().map(PathPattern::new).collect(),
            hosts: hosts.as_slice().into(),
            methods: methods.iter().map(|method| method.as_bytes().into()).collect(),
            headers: patterns(headers, true),
            cookies: patterns(cookies, false),
            query: patterns(query, false),
            secure: *secure,
            action: match &rule.action {
                RuleAction::Pass => Action::Pass,
                RuleAction::Rewrite(to) => Action::Rewrite(Target::new(to, has_star)?),
                RuleAction::Redirect { to, status } => Action::Redirect {
                    to: Target::new(to, has_star)?,
                    status: *status,
                },
                RuleAction::Respond { status, body } => Action::Respond {
                    status: *status,
                    body: body.as_deref().map(Into::into),
                },
            },
            last: rule.last,
        })
    }

    /// Returns the range of the decoded path that the star matched; `None` if a condition does not hold.
    fn matches(
        &self,
        request: &Request<'_>,
        path: &str,
        query: Option<&[u8]>,
        is_secure: bool,
    ) -> Option<Range<usize>> {
        let star = match &*self.paths {
            // Without a pattern, the star stands for everything after the first slash.
            [] => 1.min(path.len())..path.len(),
            paths => paths.iter().find_map(|pattern| pattern.matches(path))?,
        };
        let is_match = (self.methods.is_empty() || self.methods.iter().any(|method| **method == *request.method_name))
            && (self.hosts.is_empty() || has_host(&self.hosts, request.authority))
            && self.secure.is_none_or(|secure| secure == is_secure)
            && self.headers.iter().all(|(name, value)| has_field(request, name, value))
            && self
                .cookies
                .iter()
                .all(|(name, value)| has_cookie(request, name, value))
            && self.query.iter().all(|(name, value)| has_parameter(query, name, value));
        is_match.then_some(star)
    }
}

impl PathPattern {
    fn new(pattern: &Pattern) -> PathPattern {
        match pattern {
            Pattern::Exact(path) => PathPattern::Exact(path.as_str().into()),
            Pattern::Prefix(path) => PathPattern::Prefix(path.as_str().into()),
            Pattern::Glob(text) => PathPattern::Glob(Glob::new(text)),
        }
    }

    /// Returns the range of the path that the first star matched: empty, at the end of the path, for an exact pattern.
    fn matches(&self, path: &str) -> Option<Range<usize>> {
        match self {
            PathPattern::Exact(exact) => (**exact == *path).then_some(path.len()..path.len()),
            PathPattern::Prefix(prefix) => path.starts_with(&**prefix).then_some(prefix.len()..path.len()),
            PathPattern::Glob(glob) => glob.matches(path),
        }
    }
}

/// Returns true if a pattern matches the host of an authority. Case and one trailing dot are ignored.
fn has_host(hosts: &[HostPattern], authority: &[u8]) -> bool {
    let Ok(authority) = std::str::from_utf8(authority) else {
        return false;
    };
    // A port consists of digits after the last colon. The last part of an IPv6 address ends with a bracket instead.
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    hosts.iter().any(|host| match host {
        HostPattern::Exact(exact) => exact.eq_ignore_ascii_case(name),
        HostPattern::Wildcard(parent) => {
            // At least one character and a dot have to precede the parent domain.
            let parent_start = name.len().checked_sub(parent.len()).filter(|&at| at > 1);
            parent_start.is_some_and(|at| {
                name.as_bytes()[at - 1] == b'.' && name.as_bytes()[at..].eq_ignore_ascii_case(parent.as_bytes())
            })
        }
    })
}

/// Returns true if a field with this name has a value that matches. An empty pattern requires that the request has no
/// such field.
fn has_field(request: &Request<'_>, name: &[u8], value: &Wildcard) -> bool {
    let mut values = request.fields.by_name(name);
    match value.is_empty() {
        true => values.next().is_none(),
        false => values.any(|sent| value.matches(sent)),
    }
}

/// Returns true if a cookie with this name (RFC 6265 §5.4) has a value that matches. An empty pattern requires that the
/// request has no such cookie. Clients of HTTP/2 and HTTP/3 may split the cookies into several fields.
fn has_cookie(request: &Request<'_>, name: &[u8], value: &Wildcard) -> bool {
    let fields = request.fields.by_name(b"cookie");
    let cookies = fields.flat_map(|field| field.split(|&byte| byte == b';'));
    let mut values = cookies.filter_map(|cookie| cookie.trim_ascii().strip_prefix(name)?.strip_prefix(b"="));
    match value.is_empty() {
        true => values.next().is_none(),
        false => values.any(|sent| value.matches(sent)),
    }
}

/// Returns true if a query parameter with this name has a value that matches. An empty pattern requires that the query
/// has no such parameter.
fn has_parameter(query: Option<&[u8]>, name: &[u8], value: &Wildcard) -> bool {
    let mut values = query
        .unwrap_or_default()
        .split(|&byte| byte == b'&')
        .filter_map(|parameter| {
            let rest = parameter.strip_prefix(name)?;
            match rest.split_first() {
                // An empty query has no parameters, so it does not match a parameter with an empty name.
                None => (!parameter.is_empty()).then_some(rest),
                Some((b'=', value)) => Some(value),
                Some(_) => None,
            }
        });
    match value.is_empty() {
        true => values.next().is_none(),
        false => values.any(|sent| value.matches(sent)),
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
