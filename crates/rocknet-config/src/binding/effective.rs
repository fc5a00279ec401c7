//! Settings as they apply at one place, grouped as a request meets them.

use crate::model::SourceSpan;

/// A part of an explanation, in the order in which a request meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingGroup {
    /// Names and addresses of the site, its encryption and its log.
    Site,
    /// Client addresses and users that may enter.
    Access,
    /// Redirects and rules.
    Rules,
    /// The handler that answers, with the keys of its table.
    Handler,
    /// The threads and processes of controllers.
    Controller,
    /// The lookup of files.
    Files,
    /// Changes of answers.
    Filters,
    /// Limits and priority.
    Limits,
}

/// One setting as it applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveSetting {
    /// `root`, `headers.X-Frame-Options`, `redirects./old`
    pub key: String,
    /// The value as it would be written.
    pub value: String,
    /// SourceSpan of the key; `None` for a default.
    pub span: Option<SourceSpan>,
    pub group: SettingGroup,
}
