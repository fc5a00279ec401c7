//! Levels of the error log.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Severity of a message in the error log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The server, or a site, does not work as configured.
    Error,
    /// The server works, but the operator should act.
    Warn,
    /// Milestones in the life of the server.
    Info,
    /// Details for the diagnosis of a problem.
    Debug,
    /// Every step.
    Trace,
}

impl Level {
    /// All levels, from the most to the least severe.
    pub const ALL: [Level; 5] = [Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace];

    /// Returns the word of the configuration and of JSON.
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        }
    }

    /// Returns the level with a name, or `None` if no level has it.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// Maximum length in bytes of the path of a module.
const MAX_MODULE: usize = 128;

/// Levels of the error log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogLevel {
    /// Minimum severity of the messages that are written.
    pub level: Level,
    /// Levels of single modules that differ from it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub modules: BTreeMap<String, Level>,
}

/// Change of the level of the error log, or of one module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LogLevelChange {
    /// New level; `None`: the module gets the level of all others again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Path of the module, such as `rocknet_proxy` or `rocknet_proxy::background`; `None`: all modules without a
    /// level of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
}

impl LogLevelChange {
    /// Returns a change that applies to all modules without a level of their own.
    pub fn new(level: Level) -> LogLevelChange {
        LogLevelChange {
            level: Some(level),
            module: None,
        }
    }

    /// Checks that there is a level or a module, and the path of the module.
    ///
    /// # Errors
    ///
    /// Returns a message for the client.
    pub fn check(&self) -> Result<(), String> {
        let is_path = |module: &String| {
            (1..=MAX_MODULE).contains(&module.len())
                && module
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':'))
        };
        if self.level.is_none() && self.module.is_none() {
            return Err("`level` is missing".to_owned());
        }
        if self.module.as_ref().is_none_or(is_path) {
            return Ok(());
        }
        Err("`module` must be a path such as `rocknet_proxy` or `rocknet_proxy::background`".to_owned())
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.level)?;
        for (module, level) in &self.modules {
            writeln!(f, "{module} {level}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_the_names_of_the_configuration() {
        for level in Level::ALL {
            assert_eq!(Level::from_name(level.name()), Some(level));
            assert_eq!(serde_json::to_string(&level).unwrap(), format!("\"{level}\""));
        }
        assert_eq!(Level::from_name("Info"), None);
    }

    #[test]
    fn modules_are_paths() {
        for (module, is_valid) in [
            ("rocknet_proxy", true),
            ("rustls::client", true),
            ("", false),
            ("a b", false),
            ("a\n", false),
            (&*"x".repeat(MAX_MODULE + 1), false),
        ] {
            let change = LogLevelChange {
                module: Some(module.to_owned()),
                ..LogLevelChange::new(Level::Debug)
            };
            assert_eq!(change.check().is_ok(), is_valid, "{module:?}");
        }
        assert!(LogLevelChange::new(Level::Debug).check().is_ok());
        let change = |module: Option<&str>| LogLevelChange {
            level: None,
            module: module.map(str::to_owned),
        };
        assert!(change(Some("a")).check().is_ok());
        assert!(change(None).check().is_err());
    }
}
