//! Rules of a site: conditions on requests, and the action for requests that meet them.

use std::fmt;

use super::access::ClientRange;
use super::pattern::{HostPattern, Pattern};
use super::regex_pattern::RegexPattern;
use super::source_span::SourceSpan;
use crate::choice::choice;

choice! {
    /// Kind of the file or folder that a path leads to.
    #[derive(Copy)]
    pub enum Existence {
        File = "file", "a file";
        Folder = "folder", "a folder";
        Nothing = "nothing", "neither a file nor a folder";
    }
}

choice! {
    /// Scheme of a request.
    #[derive(Copy)]
    pub enum RequestScheme {
        Https = "https", "with TLS";
        Http = "http", "without TLS";
    }
}

/// Rule of a site. Rules are applied in the order of the configuration, each at most once per request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Conditions that the request must meet.
    pub when: Conditions,
    /// Exceptions: the rule does not apply to a request that meets all conditions of one of them.
    pub unless: Vec<Conditions>,
    /// Action for requests that meet all conditions.
    pub action: RuleAction,
    /// True if the following rules are skipped after this rule has matched. A redirect or a response always skips them.
    pub last: bool,
    /// True if a response of the rule also applies to the path of the file that the request leads to, such as
    /// `/docs/index.html` for a request for `/docs/`.
    pub resolved: bool,
    /// Position of the rule in the configuration.
    pub span: SourceSpan,
}

/// Conditions of a rule, all of which must be met. An empty list is always met.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conditions {
    /// Patterns, one of which must match the path.
    pub paths: Vec<Pattern>,
    /// Patterns, one of which must match the host of the request.
    pub hosts: Vec<HostPattern>,
    /// Regular expressions of hosts in lower case, which are alternatives to `hosts`.
    pub host_regexes: Vec<RegexPattern>,
    /// Methods in upper case, one of which must be the method of the request.
    pub methods: Vec<String>,
    /// Names of header fields, each with a pattern of the value. A wildcard ignores case. An empty pattern means that
    /// the field must be absent.
    pub headers: Vec<(String, ValuePattern)>,
    /// Names of cookies, each with a pattern of the value. In a wildcard, case matters. An empty pattern means that the
    /// cookie must be absent.
    pub cookies: Vec<(String, ValuePattern)>,
    /// Names of query parameters, each with a pattern of the value. In a wildcard, case matters. An empty pattern means
    /// that the parameter must be absent. The name `*` stands for the whole query.
    pub query: Vec<(String, ValuePattern)>,
    /// Ranges of addresses, one of which must contain the address of the client.
    pub clients: Vec<ClientRange>,
    /// Condition on files and folders; `None`: no condition.
    pub existence: Option<ExistenceCondition>,
    /// `Some(true)`: over TLS only; `Some(false)`: without TLS only; `None`: both.
    pub secure: Option<bool>,
}

/// Pattern of the value of a header field, cookie or query parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValuePattern {
    /// Text in which `*` stands for any characters. The empty text means that the value must be absent.
    Wildcard(String),
    /// Regular expression.
    Regex(RegexPattern),
}

impl fmt::Display for ValuePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValuePattern::Wildcard(text) => f.write_str(text),
            ValuePattern::Regex(regex) => regex.fmt(f),
        }
    }
}

impl Rule {
    /// Returns the conditions of the rule and of its exceptions.
    pub fn all_conditions(&self) -> impl Iterator<Item = &Conditions> {
        std::iter::once(&self.when).chain(&self.unless)
    }
}

/// Condition on files and folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistenceCondition {
    /// Kinds, one of which the path must lead to.
    pub kinds: Vec<Existence>,
    /// Path below the site, in which `{path}` stands for the path of the request; `None`: the path of the request.
    pub at: Option<String>,
}

/// Action of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleAction {
    /// No action; with `last`, the remaining rules are skipped.
    Pass,
    /// Replaces the path by this text, such as `/index.php?page={1}`. The query of the request is kept, and follows a
    /// query of the text. It is dropped if the text ends in `?`. It is not added again if the text has `{query}` in its
    /// query or `{target}` in its path. `{*}` has the same meaning as in [`RuleAction::Redirect`]. `{1}` and names in
    /// braces stand for groups of regular expressions.
    Rewrite(String),
    /// Redirects the client.
    Redirect {
        /// Path or absolute URL. `{*}` stands for the part of the path that the first `*` of the matching pattern of
        /// `paths` matched. If `paths` is empty, it stands for the path after its first slash. The query of the request
        /// is kept unless the text has a query, or ends in `?`.
        to: String,
        /// Status: 301, 302, 303, 307 or 308.
        status: u16,
    },
    /// Sends a response.
    Respond {
        /// Status, except 3xx.
        status: u16,
        /// Response body, which may have placeholders; `None`: the error page of the status.
        body: Option<String>,
    },
}
