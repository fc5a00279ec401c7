//! Kinds of offences, and reasons of bans.

use std::fmt;

/// Maximum number of characters of a reason that an operator gives.
pub(super) const MAX_REASON: usize = 200;

/// Kind of an offence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offence {
    /// A login with a wrong password.
    Login,
    /// A request for something that does not exist.
    NotFound,
    /// A request that was refused.
    Refused,
    /// A TLS handshake that did not complete.
    Handshake,
}

impl Offence {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Offence; 4] = [Offence::Login, Offence::NotFound, Offence::Refused, Offence::Handshake];

    /// Returns the name of the key of `[ban]`. Metrics and the store use the same name.
    pub fn name(self) -> &'static str {
        match self {
            Offence::Login => "logins",
            Offence::NotFound => "not_found",
            Offence::Refused => "refused",
            Offence::Handshake => "handshakes",
        }
    }

    /// Returns a description of several offences.
    pub fn description(self) -> &'static str {
        match self {
            Offence::Login => "failed logins",
            Offence::NotFound => "requests for missing files",
            Offence::Refused => "refused requests",
            Offence::Handshake => "failed TLS handshakes",
        }
    }
}

/// Reason of a ban.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The client has committed too many offences of a kind.
    Offence(Offence),
    /// An operator has banned the client. The text is the operator's, and may be empty.
    Operator(Box<str>),
}

impl Reason {
    /// Beginning of the stored form of a reason that an operator gave.
    const OPERATOR: &str = "operator ";

    /// Returns the reason in the format of the store.
    pub(super) fn stored(&self) -> String {
        match self {
            Reason::Offence(offence) => offence.name().to_owned(),
            Reason::Operator(text) => format!("{}{text}", Reason::OPERATOR),
        }
    }

    /// Parses a reason in the format of the store; `None` if it is invalid.
    pub(super) fn from_stored(text: &str) -> Option<Reason> {
        if let Some(text) = text.strip_prefix(Reason::OPERATOR) {
            return Some(Reason::Operator(text.into()));
        }
        let offence = Offence::ALL.into_iter().find(|offence| offence.name() == text)?;
        Some(Reason::Offence(offence))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Offence(offence) => f.write_str(offence.description()),
            Reason::Operator(text) if text.is_empty() => f.write_str("by an operator"),
            Reason::Operator(text) => f.write_str(text),
        }
    }
}
