//! Effective settings of a site or route, in groups.

use crate::model::SourceSpan;

/// Group of settings in the output of `rocknet explain`, in the order in which a request is processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingGroup {
    /// Names and listeners of the site, its TLS settings and its log.
    Site,
    /// Access control.
    Access,
    /// Redirects and rules.
    Rules,
    /// Handler of requests, with the keys of its table.
    Handler,
    /// Threads and processes of controllers.
    Controller,
    /// Lookup of files.
    Files,
    /// Filters of responses.
    Filters,
    /// Limits and priority.
    Limits,
}

/// Effective setting of a site or route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveSetting {
    /// Path of the key: `root`, `headers.X-Frame-Options`, `redirects./old`.
    pub key: String,
    /// Value as TOML.
    pub value: String,
    /// Position of the key; `None` for a default.
    pub span: Option<SourceSpan>,
    /// Group in which the setting is listed.
    pub group: SettingGroup,
}
