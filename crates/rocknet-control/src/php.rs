//! Pools of PHP that a running server manages, which the command `php` prints one per line.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::status::MAX_SHOWN;
use crate::text;

/// State of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PhpState {
    /// Accepts requests.
    Ready,
    /// Is being started; requests wait.
    Starting,
    /// Does not run; requests fail until a later start succeeds.
    Failed,
    /// An operator has stopped it; requests fail until it is started again.
    Stopped,
    /// A state that only a newer server knows.
    #[default]
    #[serde(other)]
    Other,
}

impl PhpState {
    /// Returns the name used in JSON and on terminals.
    pub fn name(self) -> &'static str {
        match self {
            PhpState::Ready => "ready",
            PhpState::Starting => "starting",
            PhpState::Failed => "failed",
            PhpState::Stopped => "stopped",
            PhpState::Other => "other",
        }
    }
}

/// A pool: a php-fpm with the processes that it starts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PhpPoolSummary {
    /// Name: the version, with the account if a site names one, such as `8.2` or `8.2@alice`. The name of a pool with
    /// settings of its own also has the first site that uses it, such as `8.2/shop.example`.
    pub name: String,
    /// Version of PHP.
    pub version: String,
    /// Account of the scripts, if a site names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Socket that requests are sent to.
    pub socket: PathBuf,
    /// State.
    pub state: PhpState,
    /// Number of processes, including php-fpm itself; 0 if it is not known.
    pub processes: u64,
    /// Starts after the first one: after a failure, or by an operator.
    pub restarts: u64,
    /// Reason why PHP does not run, if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// Pool that a request concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PhpPoolName {
    /// Name of the pool, as in the list of pools.
    pub name: String,
}

/// Formats pools, one line for each.
#[derive(Debug, Clone, Copy)]
pub struct PhpPoolList<'a>(pub &'a [PhpPoolSummary]);

impl fmt::Display for PhpPoolList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "the server runs no PHP");
        }
        for pool in self.0 {
            let name = text::sanitized(&pool.name, MAX_SHOWN);
            let (processes, restarts) = (text::count(pool.processes), text::count(pool.restarts));
            write!(
                f,
                "{name}  {}  {processes} processes  {restarts} restarts",
                pool.state.name()
            )?;
            if let Some(fault) = &pool.fault {
                write!(f, "  {}", text::sanitized(fault, MAX_SHOWN))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_listed() {
        let ready = PhpPoolSummary {
            name: "8.2".into(),
            state: PhpState::Ready,
            processes: 3,
            restarts: 1,
            ..PhpPoolSummary::default()
        };
        let failed = PhpPoolSummary {
            name: "8.1@alice".into(),
            state: PhpState::Failed,
            fault: Some("it\nended".into()),
            ..PhpPoolSummary::default()
        };
        let text = PhpPoolList(&[ready, failed]).to_string();
        assert!(
            text.starts_with("8.2  ready  3 processes  1 restarts\n8.1@alice  failed  0 processes"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 2, "{text}");
        assert_eq!(PhpPoolList(&[]).to_string(), "the server runs no PHP\n");
        let newer: PhpPoolSummary = serde_json::from_str(r#"{"state": "asleep", "more": 1}"#).unwrap();
        assert_eq!(newer.state, PhpState::Other);
    }
}
