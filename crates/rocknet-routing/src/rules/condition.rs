//! Conditions of a rule, prepared for matching.

use std::borrow::Cow;
use std::ops::Range;

use rocknet_config::client_ranges::ClientRanges;
use rocknet_config::model::{
    Conditions, Existence, ExistenceCondition, HostPattern, Pattern, RegexPattern, ValuePattern,
};
use rocknet_proto::request::Request;

use super::facts::{LookupError, RequestFacts};
use crate::captures::{CapturedText, Captures};
use crate::glob::Glob;
use crate::wildcard::Wildcard;

/// Conditions of one rule.
#[derive(Debug)]
pub(super) struct Matcher {
    paths: Box<[PathPattern]>,
    hosts: Box<[HostPattern]>,
    methods: Box<[Box<[u8]>]>,
    host_regexes: Box<[RegexPattern]>,
    headers: Box<[(Box<[u8]>, ValueMatcher)]>,
    cookies: Box<[(Box<[u8]>, ValueMatcher)]>,
    query: Box<[(Box<[u8]>, ValueMatcher)]>,
    /// `None` if every client is accepted.
    clients: Option<ClientRanges>,
    /// True if the request must use TLS, false if it must not; `None` if both are accepted.
    secure: Option<bool>,
    existence: Option<ExistenceCondition>,
    /// Names of groups that the target of the rule may contain.
    names: Box<[String]>,
}

/// Sets of conditions on requests, without conditions on files.
#[derive(Debug)]
pub struct RequestConditions(Box<[Matcher]>);

impl RequestConditions {
    /// Prepares sets of conditions.
    pub fn new(sets: &[Conditions]) -> RequestConditions {
        RequestConditions(sets.iter().map(|set| Matcher::new(set, &[])).collect())
    }

    /// Returns true if the request meets all conditions of one of the sets. `path`: its decoded path.
    pub fn matches(&self, request: &Request<'_>, path: &str, facts: &dyn RequestFacts) -> bool {
        let matches = |set: &Matcher| set.matches_message(request, path, request.query, facts).is_some();
        self.0.iter().any(matches)
    }
}

/// Pattern of the value of a header field, cookie or query parameter.
#[derive(Debug)]
enum ValueMatcher {
    Wildcard(Wildcard),
    Regex(RegexPattern),
}

/// A path whose existence a rule depends on, and the reason why it is not known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnknownPath {
    pub path: String,
    pub error: LookupError,
}

/// Match of a path. The groups of a regular expression are determined only if the target of the rule needs them.
#[derive(Debug)]
pub(super) enum PathMatch<'m> {
    /// Range that the star matched.
    Star(Range<usize>),
    /// The regular expression that matches.
    Regex(&'m RegexPattern),
}

#[derive(Debug)]
enum PathPattern {
    Exact(Box<str>),
    Prefix(Box<str>),
    Glob(Glob),
    Regex(RegexPattern),
}

impl Matcher {
    /// Prepares conditions. `names`: names of groups that the target of the rule may contain.
    pub(super) fn new(when: &Conditions, names: &[String]) -> Matcher {
        let patterns = |all: &[(String, ValuePattern)], folds_case| {
            all.iter()
                .map(|(name, pattern)| (name.as_bytes().into(), ValueMatcher::new(pattern, folds_case)))
                .collect()
        };
        Matcher {
            paths: when.paths.iter().map(PathPattern::new).collect(),
            hosts: when.hosts.as_slice().into(),
            host_regexes: when.host_regexes.as_slice().into(),
            methods: when.methods.iter().map(|method| method.as_bytes().into()).collect(),
            headers: patterns(&when.headers, true),
            cookies: patterns(&when.cookies, false),
            query: patterns(&when.query, false),
            clients: (!when.clients.is_empty()).then(|| ClientRanges::new(&when.clients)),
            secure: when.secure,
            existence: when.existence.clone(),
            names: names.into(),
        }
    }

    /// Returns the match of the path; `None` if a condition does not hold. The disk is queried last, because that is
    /// the most expensive condition.
    pub(super) fn matches(
        &self,
        request: &Request<'_>,
        path: &str,
        query: Option<&[u8]>,
        facts: &dyn RequestFacts,
    ) -> Result<Option<PathMatch<'_>>, UnknownPath> {
        let Some(matched) = self.matches_message(request, path, query, facts) else {
            return Ok(None);
        };
        let exists = match &self.existence {
            None => true,
            Some(condition) => exists(condition, path, facts)?,
        };
        Ok(exists.then_some(matched))
    }

    /// Returns true if a path meets the condition on the path, or if there is no such condition.
    pub(super) fn has_path(&self, path: &str) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|pattern| pattern.matches(path).is_some())
    }

    /// Returns the match of the path if all conditions other than `exists` hold. Cheap comparisons come first, then
    /// the patterns, and last the host, which regular expressions need in lower case.
    fn matches_message(
        &self,
        request: &Request<'_>,
        path: &str,
        query: Option<&[u8]>,
        facts: &dyn RequestFacts,
    ) -> Option<PathMatch<'_>> {
        let is_method = |method: &[u8]| self.methods.iter().any(|known| **known == *method);
        if !(self.methods.is_empty() || is_method(request.method_name))
            || self.secure.is_some_and(|secure| secure != facts.is_secure())
        {
            return None;
        }
        let matched = match &*self.paths {
            // Without a pattern, the star stands for everything after the first slash.
            [] => PathMatch::Star(1.min(path.len())..path.len()),
            paths => paths.iter().find_map(|pattern| pattern.matches(path))?,
        };
        if let Some(clients) = &self.clients
            && !clients.contain(facts.client())
        {
            return None;
        }
        for (name, pattern) in &self.headers {
            pattern.find(request.fields.by_name(name))?;
        }
        for (name, pattern) in &self.cookies {
            pattern.find(cookies(request, name))?;
        }
        for (name, pattern) in &self.query {
            pattern.find(parameters(query, name))?;
        }
        let is_host = self.hosts.is_empty() && self.host_regexes.is_empty()
            || has_host(&self.hosts, request.authority)
            || self.host_match(request).is_some();
        is_host.then_some(matched)
    }

    /// Returns the texts that the conditions matched, for the target of the rule. Called only if all conditions hold.
    pub(super) fn captures<'r>(
        &self,
        matched: &PathMatch<'_>,
        request: &Request<'r>,
        path: &str,
        query: Option<&'r [u8]>,
    ) -> Captures<'r> {
        let mut captures = match matched {
            PathMatch::Star(star) => Captures::of_star(star.clone()),
            PathMatch::Regex(regex) => Captures::of_path(regex, path, &self.names).unwrap_or_default(),
        };
        if self.names.is_empty() {
            return captures;
        }
        if !has_host(&self.hosts, request.authority)
            && let Some((regex, name)) = self.host_match(request)
        {
            captures.add(regex, &Cow::Owned(name), &self.names, CapturedText::Plain);
        }
        for (name, pattern) in &self.headers {
            let value = pattern.find(request.fields.by_name(name));
            pattern.capture(value, &self.names, CapturedText::Plain, &mut captures);
        }
        for (name, pattern) in &self.cookies {
            let value = pattern.find(cookies(request, name));
            pattern.capture(value, &self.names, CapturedText::Plain, &mut captures);
        }
        for (name, pattern) in &self.query {
            let value = pattern.find(parameters(query, name));
            pattern.capture(value, &self.names, CapturedText::Encoded, &mut captures);
        }
        captures
    }

    /// Returns the regular expression that matches the host of the request, with the host in lower case.
    fn host_match(&self, request: &Request<'_>) -> Option<(&RegexPattern, Vec<u8>)> {
        if self.host_regexes.is_empty() {
            return None;
        }
        let name = host_name(request.authority)?.to_ascii_lowercase().into_bytes();
        let regex = self.host_regexes.iter().find(|regex| regex.matches(&name))?;
        Some((regex, name))
    }
}

impl ValueMatcher {
    fn new(pattern: &ValuePattern, folds_case: bool) -> ValueMatcher {
        match pattern {
            ValuePattern::Wildcard(text) => ValueMatcher::Wildcard(Wildcard::new(text, folds_case)),
            ValuePattern::Regex(regex) => ValueMatcher::Regex(regex.clone()),
        }
    }

    /// Returns the first value that matches. The empty pattern requires that there is no value, and returns an empty
    /// one.
    fn find<'r>(&self, mut values: impl Iterator<Item = &'r [u8]>) -> Option<&'r [u8]> {
        match self {
            ValueMatcher::Wildcard(pattern) if pattern.is_empty() => values.next().is_none().then_some(&[]),
            ValueMatcher::Wildcard(pattern) => values.find(|value| pattern.matches(value)),
            ValueMatcher::Regex(regex) => values.find(|value| regex.matches(value)),
        }
    }

    /// Adds the named groups of a value that matches.
    fn capture<'r>(
        &self,
        value: Option<&'r [u8]>,
        names: &[String],
        text: fn(Cow<'r, [u8]>) -> CapturedText<'r>,
        captures: &mut Captures<'r>,
    ) {
        if let (ValueMatcher::Regex(regex), Some(value)) = (self, value) {
            captures.add(regex, &Cow::Borrowed(value), names, text);
        }
    }
}

/// Returns true if the path of a condition leads to one of its kinds.
fn exists(condition: &ExistenceCondition, path: &str, facts: &dyn RequestFacts) -> Result<bool, UnknownPath> {
    let found = match &condition.at {
        None => kind_at(path, facts)?,
        // Without the slash at the end of a folder, `{path}/x` has one slash, and `{path}.html` is beside the folder.
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
/// Name that stands for the whole query instead of a parameter.
const WHOLE_QUERY: &[u8] = b"*";

impl PathPattern {
    fn new(pattern: &Pattern) -> PathPattern {
        match pattern {
            Pattern::Exact(path) => PathPattern::Exact(path.as_str().into()),
            Pattern::Prefix(path) => PathPattern::Prefix(path.as_str().into()),
            Pattern::Glob(text) => PathPattern::Glob(Glob::new(text)),
            Pattern::Regex(regex) => PathPattern::Regex(regex.clone()),
        }
    }

    /// Returns the match of a path; `None` if it does not match.
    fn matches(&self, path: &str) -> Option<PathMatch<'_>> {
        let star = match self {
            PathPattern::Exact(exact) => (**exact == *path).then_some(path.len()..path.len()),
            PathPattern::Prefix(prefix) => path.starts_with(&**prefix).then_some(prefix.len()..path.len()),
            PathPattern::Glob(glob) => glob.matches(path),
            PathPattern::Regex(regex) => return regex.matches(path.as_bytes()).then_some(PathMatch::Regex(regex)),
        };
        star.map(PathMatch::Star)
    }
}

/// Returns the host of an authority without its port and without one trailing dot; `None` if it is not UTF-8.
fn host_name(authority: &[u8]) -> Option<&str> {
    let authority = std::str::from_utf8(authority).ok()?;
    // A port consists of digits after the last colon. The last part of an IPv6 address ends with a bracket instead.
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    };
    Some(name.strip_suffix('.').unwrap_or(name))
}

/// Returns true if a pattern matches the host of an authority. Case is ignored.
fn has_host(hosts: &[HostPattern], authority: &[u8]) -> bool {
    let Some(name) = host_name(authority) else {
        return false;
    };
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

/// Returns the values of the cookies with this name (RFC 6265 §5.4). Clients of HTTP/2 and HTTP/3 may split the cookies
/// into several fields.
fn cookies<'r>(request: &Request<'r>, name: &[u8]) -> impl Iterator<Item = &'r [u8]> {
    let fields = request.fields.by_name(b"cookie");
    let cookies = fields.flat_map(|field| field.split(|&byte| byte == b';'));
    cookies.filter_map(move |cookie| cookie.trim_ascii().strip_prefix(name)?.strip_prefix(b"="))
}

/// Returns the values of the query parameters with this name. A parameter without `=` has an empty value. `*` is the
/// name of the whole query, which has no value if it is empty.
fn parameters<'r>(query: Option<&'r [u8]>, name: &[u8]) -> impl Iterator<Item = &'r [u8]> {
    let query = query.unwrap_or_default();
    let is_whole = name == WHOLE_QUERY;
    let whole = (is_whole && !query.is_empty()).then_some(query);
    let parameters = if is_whole { &[][..] } else { query }.split(|&byte| byte == b'&');
    let named = parameters.filter_map(move |parameter| {
        let rest = parameter.strip_prefix(name)?;
        match rest.split_first() {
            // An empty query has no parameters, so it does not match a parameter with an empty name.
            None => (!parameter.is_empty()).then_some(rest),
            Some((b'=', value)) => Some(value),
            Some(_) => None,
        }
    });
    whole.into_iter().chain(named)
}
