//! Commands to a running server, and the parser for commands typed at its terminal.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text;

/// A query or instruction for a running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// Requests the state of the server, a [`crate::Status`].
    Status,
    /// Requests the sites, a list of [`crate::SiteSummary`].
    Sites,
    /// Reads the configuration again. An invalid configuration changes nothing.
    Reload,
    /// Finishes requests in progress and ends the server.
    Quit,
    /// Lists the commands.
    Help,
}

impl Command {
    /// All commands, in the order of the help text.
    pub const ALL: [Command; 5] = [
        Command::Status,
        Command::Sites,
        Command::Reload,
        Command::Quit,
        Command::Help,
    ];

    /// Returns the word to type at the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Command::Status => "status",
            Command::Sites => "sites",
            Command::Reload => "reload",
            Command::Quit => "quit",
            Command::Help => "help",
        }
    }

    /// Returns a description in one line.
    pub fn summary(self) -> &'static str {
        match self {
            Command::Status => "current connections, requests, responses and cache",
            Command::Sites => "list the sites and their addresses",
            Command::Reload => "read the configuration again; an invalid one changes nothing",
            Command::Quit => "finish requests in progress and end",
            Command::Help => "list the commands",
        }
    }

    /// Returns synonyms that users know from other servers and shells. A synonym must be typed in full.
    fn synonyms(self) -> &'static [&'static str] {
        match self {
            Command::Quit => &["stop", "exit"],
            Command::Help => &["?"],
            Command::Status | Command::Sites | Command::Reload => &[],
        }
    }

    /// Parses a line typed at the terminal; returns `None` if the line is empty. Case is ignored, and a unique prefix
    /// of a command suffices.
    ///
    /// # Errors
    ///
    /// Fails if the word is unknown or ambiguous. The error contains the word and suggestions.
    pub fn parse(line: &str) -> Result<Option<Command>, UnknownCommand> {
        let word = line.trim();
        if word.is_empty() {
            return Ok(None);
        }
        let unknown = |suggestions| UnknownCommand {
            word: text::sanitized(word, MAX_SHOWN),
            suggestions,
        };
        if word.len() > MAX_LINE {
            return Err(unknown(Vec::new()));
        }
        let lower = word.to_ascii_lowercase();
        let is_exact = |command: &Command| command.name() == lower || command.synonyms().contains(&lower.as_str());
        if let Some(command) = Command::ALL.into_iter().find(is_exact) {
            return Ok(Some(command));
        }
        let matching: Vec<_> = Command::ALL
            .into_iter()
            .filter(|command| command.name().starts_with(&lower))
            .collect();
        match matching[..] {
            [command] => Ok(Some(command)),
            [] => Err(unknown(nearest(&lower))),
            _ => Err(unknown(matching)),
        }
    }

    /// Returns the text that `help` prints.
    pub fn help() -> String {
        let width = Command::ALL
            .map(|command| command.name().len())
            .into_iter()
            .max()
            .unwrap_or_default();
        Command::ALL
            .map(|command| format!("{:width$}  {}\n", command.name(), command.summary()))
            .concat()
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Command {
    type Err = UnknownCommand;

    fn from_str(line: &str) -> Result<Command, UnknownCommand> {
        let empty = || UnknownCommand {
            word: String::new(),
            suggestions: Vec::new(),
        };
        Command::parse(line)?.ok_or_else(empty)
    }
}

/// An unknown command, or an ambiguous prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCommand {
    /// The word, safe for a terminal: truncated and without control characters.
    pub word: String,
    /// Suggested commands, in the order of the help text.
    pub suggestions: Vec<Command>,
}

impl fmt::Display for UnknownCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown command `{}`", self.word)?;
        match &self.suggestions[..] {
            [] => f.write_str("; `help` lists the commands"),
            [only] => write!(f, "; did you mean `{only}`?"),
            [most @ .., last] => {
                f.write_str("; did you mean ")?;
                for command in most {
                    write!(f, "`{command}` ")?;
                }
                write!(f, "or `{last}`?")
            }
        }
    }
}

impl std::error::Error for UnknownCommand {}

/// Returns the commands closest to a mistyped word. The list is empty if every command differs by more than
/// [`MAX_TYPOS`].
fn nearest(word: &str) -> Vec<Command> {
    let distance = |command: Command| strsim::damerau_levenshtein(word, command.name());
    let mut closest: Vec<_> = Command::ALL
        .into_iter()
        .filter(|&command| distance(command) <= MAX_TYPOS)
        .collect();
    closest.sort_by_key(|&command| distance(command));
    let least = closest.first().map(|&command| distance(command));
    closest.retain(|&command| Some(distance(command)) == least);
    closest
}

/// Maximum number of wrong, missing, extra or swapped letters in a typo. With a higher limit, all words of four to six
/// letters would be similar.
const MAX_TYPOS: usize = 2;

/// Maximum length in bytes of a line that is compared with the commands. Longer lines are assumed to be pasted text.
const MAX_LINE: usize = 64;

/// Maximum number of characters of an unknown word that are shown.
const MAX_SHOWN: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed() {
        fn check(line: &str, expected: Option<Command>) {
            assert_eq!(Command::parse(line), Ok(expected), "{line:?}");
        }
        for (line, expected) in [
            ("", None),
            (" \t\r\n", None),
            ("status", Some(Command::Status)),
            ("  Status \r\n", Some(Command::Status)),
            ("st", Some(Command::Status)),
            ("si", Some(Command::Sites)),
            ("sites", Some(Command::Sites)),
            ("r", Some(Command::Reload)),
            ("RELOAD", Some(Command::Reload)),
            ("q", Some(Command::Quit)),
            ("stop", Some(Command::Quit)),
            ("exit", Some(Command::Quit)),
            ("h", Some(Command::Help)),
            ("?", Some(Command::Help)),
        ] {
            check(line, expected);
        }
        for command in Command::ALL {
            check(command.name(), Some(command));
            assert_eq!(command.to_string().parse(), Ok(command));
        }
    }

    #[test]
    fn typos_get_suggestions() {
        fn check(line: &str, expected: &str) {
            assert_eq!(Command::parse(line).unwrap_err().to_string(), expected, "{line:?}");
        }
        for (line, expected) in [
            ("s", "unknown command `s`; did you mean `status` or `sites`?"),
            ("sttaus", "unknown command `sttaus`; did you mean `status`?"),
            ("relaod", "unknown command `relaod`; did you mean `reload`?"),
            ("site!", "unknown command `site!`; did you mean `sites`?"),
            ("qit", "unknown command `qit`; did you mean `quit`?"),
            ("hepl", "unknown command `hepl`; did you mean `help`?"),
            ("restart", "unknown command `restart`; `help` lists the commands"),
            ("sto", "unknown command `sto`; `help` lists the commands"),
            ("status now", "unknown command `status now`; `help` lists the commands"),
            ("\u{1b}[2Jx", "unknown command `?[2Jx`; `help` lists the commands"),
            ("ä", "unknown command `ä`; `help` lists the commands"),
        ] {
            check(line, expected);
        }
        // The message quotes only the beginning of a long line.
        let pasted = "word ".repeat(10_000);
        assert!(Command::parse(&pasted).unwrap_err().to_string().len() < 100);
        assert_eq!("".parse::<Command>().unwrap_err().suggestions, []);
    }

    #[test]
    fn help_lists_every_command_on_a_line() {
        let help = Command::help();
        assert_eq!(help.lines().count(), Command::ALL.len());
        for (line, command) in help.lines().zip(Command::ALL) {
            assert_eq!(line.split_once("  ").map(|(name, _)| name.trim()), Some(command.name()));
            assert!(line.ends_with(command.summary()));
            // The longest name has 6 letters, and 2 spaces follow it.
            assert_eq!(line.find(command.summary()), Some(8), "the descriptions are aligned");
        }
    }

    #[test]
    fn commands_are_serialized_by_name() {
        for command in Command::ALL {
            let json = serde_json::to_string(&command).unwrap();
            assert_eq!(json, format!("\"{command}\""));
            assert_eq!(serde_json::from_str::<Command>(&json).unwrap(), command);
        }
        assert!(serde_json::from_str::<Command>("\"explode\"").is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_error_is_one_line_without_control_characters(line in "\\PC{0,80}|[\\x00-\\x7f]{0,80}") {
            if let Err(unknown) = Command::parse(&line) {
                proptest::prop_assert!(!unknown.to_string().chars().any(char::is_control));
            }
        }
    }
}
