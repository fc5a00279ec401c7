//! Conditions of a rule, prepared for matching.

use std::ops::Range;

use rocknet_config::client_ranges::ClientRanges;
use rocknet_config::model::{Conditions, Existence, ExistenceCondition, HostPattern, Pattern};
use rocknet_proto::request::Request;

use super::facts::{LookupError, RequestFacts};
use crate::glob::Glob;
use crate::wildcard::Wildcard;

/// Conditions of one rule.
#[derive(Debug)]
pub(super) struct Matcher {
    paths: Box<[PathPattern]>,
    hosts: Box<[HostPattern]>,
    methods: Box<[Box<[u8]>]>,
    headers: Box<[(Box<[u8]>, Wildcard)]>,
    cookies: Box<[(Box<[u8]>, Wildcard)]>,
    query: Box<[(Box<[u8]>, Wildcard)]>,
    /// `None` if every client is accepted.
    clients: Option<ClientRanges>,
    /// True if the request must use TLS, false if it must not; `None` if both are accepted.
    secure: Option<bool>,
    existence: Option<ExistenceCondition>,
}

/// A path whose existence a rule depends on, and the reason why it is not known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnknownPath {
    pub path: String,
    pub error: LookupError,
}

#[derive(Debug)]
enum PathPattern {
    Exact(Box<str>),
    Prefix(Box<str>),
    Glob(Glob),
}

impl Matcher {
    pub(super) fn new(when: &Conditions) -> Matcher {
        let patterns = |all: &[(String, String)], folds_case| {
            all.iter()
                .map(|(name, pattern)| (name.as_bytes().into(), Wildcard::new(pattern, folds_case)))
                .collect()
        };
        Matcher {
            paths: when.paths.iter().map(PathPattern::new).collect(),
            hosts: when.hosts.as_slice().into(),
            methods: when.methods.iter().map(|method| method.as_bytes().into()).collect(),
            headers: patterns(&when.headers, true),
            cookies: patterns(&when.cookies, false),
            query: patterns(&when.query, false),
            clients: (!when.clients.is_empty()).then(|| ClientRanges::new(&when.clients)),
            secure: when.secure,
            existence: when.existence.clone(),
        }
    }

    /// Returns the range of the decoded path that the star matched; `None` if a condition does not hold. The disk is
    /// queried last, because that is the most expensive condition.
    pub(super) fn matches(
        &self,
        request: &Request<'_>,
        path: &str,
        query: Option<&[u8]>,
        facts: &dyn RequestFacts,
    ) -> Result<Option<Range<usize>>, UnknownPath> {
        let star = match &*self.paths {
            // Without a pattern, the star stands for everything after the first slash.
            [] => Some(1.min(path.len())..path.len()),
            paths => paths.iter().find_map(|pattern| pattern.matches(path)),
        };
        let Some(star) = star else { return Ok(None) };
        let is_match = (self.methods.is_empty() || self.methods.iter().any(|method| **method == *request.method_name))
            && (self.hosts.is_empty() || has_host(&self.hosts, request.authority))
            && self.secure.is_none_or(|secure| secure == facts.is_secure())
            && self
                .clients
                .as_ref()
                .is_none_or(|clients| clients.contain(facts.client()))
            && self.headers.iter().all(|(name, value)| has_field(request, name, value))
            && self
                .cookies
                .iter()
                .all(|(name, value)| has_cookie(request, name, value))
            && self.query.iter().all(|(name, value)| has_parameter(query, name, value));
        if !is_match {
            return Ok(None);
        }
        let exists = match &self.existence {
            None => true,
            Some(condition) => exists(condition, path, facts)?,
        };
        Ok(exists.then_some(star))
    }
}

/// Returns true if the path of a condition leads to one of its kinds.
fn exists(condition: &ExistenceCondition, path: &str, facts: &dyn RequestFacts) -> Result<bool, UnknownPath> {
    let found = match &condition.at {
        None => kind_at(path, facts)?,
        Some(template) => kind_at(&template.replace(PATH, path.trim_end_matches('/')), facts)?,
    };
    Ok(condition.kinds.contains(&found))
}

fn kind_at(path: &str, facts: &dyn RequestFacts) -> Result<Existence, UnknownPath> {
    facts.existence(path).map_err(|error| UnknownPath {
        path: path.to_owned(),
        error,
    })
}

/// Placeholder for the path of the request.
const PATH: &str = "{path}";

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
