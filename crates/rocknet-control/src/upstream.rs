//! Upstreams of a running server, which the command `upstreams` prints one per line.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::status::MAX_SHOWN;
use crate::text;

/// State of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum UpstreamState {
    /// Gets requests.
    Up,
    /// Fails its health checks, and gets no requests.
    Down,
    /// Is out of rotation after failures; after a pause, it gets one trial request.
    Paused,
    /// Was drained by an operator: it gets only requests of clients that are bound to it.
    Drained,
    /// A state that only a newer server knows.
    #[default]
    #[serde(other)]
    Other,
}

impl UpstreamState {
    /// Returns the name used in JSON and on terminals.
    pub fn name(self) -> &'static str {
        match self {
            UpstreamState::Up => "up",
            UpstreamState::Down => "down",
            UpstreamState::Paused => "paused",
            UpstreamState::Drained => "drained",
            UpstreamState::Other => "other",
        }
    }
}

/// An upstream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct UpstreamSummary {
    /// Address as in the configuration.
    pub address: String,
    /// State.
    pub state: UpstreamState,
    /// Number of requests and tunnels in progress.
    pub in_flight: u64,
}

/// Upstreams to drain or to enable again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpstreamAddress {
    /// Address as in the configuration, such as `http://10.0.0.2:3000`. `http://` or `https://` may be left out.
    /// Routes that use an address with different settings have an upstream each; all of them are meant.
    pub address: String,
}

/// Formats upstreams, one line for each.
#[derive(Debug, Clone, Copy)]
pub struct UpstreamList<'a>(pub &'a [UpstreamSummary]);

impl fmt::Display for UpstreamList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "no upstreams");
        }
        for upstream in self.0 {
            let address = text::sanitized(&upstream.address, MAX_SHOWN);
            writeln!(
                f,
                "{address}  {}  {} in progress",
                upstream.state.name(),
                upstream.in_flight
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_are_listed() {
        let upstream = UpstreamSummary {
            address: "http://10.0.0.1:80".into(),
            state: UpstreamState::Drained,
            in_flight: 3,
        };
        let text = UpstreamList(&[upstream]).to_string();
        assert_eq!(text, "http://10.0.0.1:80  drained  3 in progress\n");
        let newer: UpstreamSummary = serde_json::from_str(r#"{"state": "asleep", "more": 1}"#).unwrap();
        assert_eq!(newer.state, UpstreamState::Other);
    }
}
