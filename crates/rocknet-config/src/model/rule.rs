//! Rules of a site, as meant: what a request has to be like, and what is done with it then.

use super::pattern::{HostPattern, Pattern};
use super::source_span::SourceSpan;

/// Rules are looked at in the order they were written, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub when: Conditions,
    pub action: RuleAction,
    /// Ends the rules once this one holds.
    pub last: bool,
    pub span: SourceSpan,
}

/// All of these have to hold; what is empty holds always.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conditions {
    /// One of these is the path.
    pub paths: Vec<Pattern>,
    /// One of these is the host of the request.
    pub hosts: Vec<HostPattern>,
    /// Methods as they are sent: in upper case.
    pub methods: Vec<String>,
    /// Names of fields, and patterns of their values; an empty one: the field is not there.
    pub headers: Vec<(String, String)>,
    /// The same for parameters of the query.
    pub query: Vec<(String, String)>,
    /// Under TLS, or in the clear.
    pub secure: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleAction {
    /// No action; `last` ends the rules.
    Pass,
    /// Path and query that replace those of the request.
    Rewrite(String),
    Redirect {
        to: String,
        status: u16,
    },
    Respond {
        status: u16,
        body: Option<String>,
    },
}
