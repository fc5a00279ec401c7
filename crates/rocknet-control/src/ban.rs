//! Bans of a running server, and the clients with the most offences.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text;

/// Maximum number of characters that a terminal shows of an address or a reason.
const MAX_SHOWN: usize = 60;

/// Maximum number of characters that a terminal shows of the path of a file, or of its error.
const MAX_FILE_SHOWN: usize = 200;

/// Bans of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BanList {
    /// Number of bans, without those of files.
    pub total: u64,
    /// Bans, the latest first; at most 10,000.
    pub bans: Vec<BanSummary>,
    /// Files with banned addresses.
    pub files: Vec<BanListFile>,
}

/// Ban of a client or of a network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BanSummary {
    /// IPv4 address, or network.
    pub address: String,
    /// Reason: the kind of offence, or the text of the operator.
    pub reason: String,
    /// Beginning of the ban, in seconds of the Unix clock.
    pub since: u64,
    /// End of the ban, in seconds of the Unix clock; `None` if it does not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Number of bans of the client in a row, with this one.
    pub count: u32,
}

/// File with banned addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BanListFile {
    /// Path.
    pub file: String,
    /// Number of addresses and networks in use.
    pub entries: u64,
    /// Number of lines that are neither an address nor a network.
    pub skipped_lines: u64,
    /// Reason for which the file cannot be read; its earlier entries are then in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Client or network to ban.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewBan {
    /// Address or network, such as `192.0.2.7` or `192.0.2.0/24`.
    pub address: String,
    /// Duration in seconds; 0: until the ban is lifted. Without it, `ban.time` applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Reason, which the list of bans shows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Client or network whose ban is lifted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BannedAddress {
    /// Address or network, as the list of bans shows it. An address of a banned IPv6 network stands for the network.
    pub address: String,
}

/// Client with many offences.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OffenderSummary {
    /// IPv4 address, or IPv6 network.
    pub address: String,
    /// Failed logins. This number and the following ones halve every ten minutes.
    pub logins: u64,
    /// Responses 404 and 410.
    pub not_found: u64,
    /// Refused requests.
    pub refused: u64,
    /// Failed TLS handshakes.
    pub handshakes: u64,
    /// True if the client is banned now.
    pub is_banned: bool,
}

/// Parses the duration of a ban such as `30m`, `1h` or `7d`; `forever` is zero.
///
/// # Errors
///
/// Fails if the text is neither `forever` nor a whole number with a unit.
pub fn parse_ban_duration(text: &str) -> Result<Duration, String> {
    match text {
        "forever" => Ok(Duration::ZERO),
        _ => parse_duration(text).map_err(|error| format!("{error}, or forever")),
    }
}

/// Parses a duration such as `30m`, `1h` or `7d`.
///
/// # Errors
///
/// Fails if the text is not a whole number with a unit, or if the number is 0.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let invalid = || "write a whole number and a unit, such as 30m, 1h or 7d".to_owned();
    let unit = text.chars().next_back().ok_or_else(invalid)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return Err(invalid()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| invalid())?;
    match number.checked_mul(seconds) {
        Some(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err(invalid()),
    }
}

/// Formats a list of bans for a terminal. `.1`: the current time in seconds of the Unix clock.
pub struct BanListText<'a>(pub &'a BanList, pub u64);

impl fmt::Display for BanListText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BanListText(list, now) = self;
        if list.bans.is_empty() {
            writeln!(f, "no client is banned")?;
        }
        let width = list
            .bans
            .iter()
            .map(|ban| ban.address.len().min(MAX_SHOWN))
            .max()
            .unwrap_or(0);
        for ban in &list.bans {
            let left = match ban.until {
                Some(until) => text::duration(until.saturating_sub(*now)),
                None => "until lifted".to_owned(),
            };
            let address = text::sanitized(&ban.address, MAX_SHOWN);
            writeln!(
                f,
                "{address:width$}  {left:>14}  {}",
                text::sanitized(&ban.reason, MAX_SHOWN)
            )?;
        }
        let more = list.total.saturating_sub(list.bans.len() as u64);
        if more > 0 {
            writeln!(f, "and {} more", text::count(more))?;
        }
        for file in &list.files {
            let name = text::sanitized(&file.file, MAX_FILE_SHOWN);
            write!(f, "{name}: {} entries", text::count(file.entries))?;
            if file.skipped_lines > 0 {
                write!(f, ", {} lines skipped", text::count(file.skipped_lines))?;
            }
            if let Some(error) = &file.error {
                write!(f, ", cannot be read: {}", text::sanitized(error, MAX_FILE_SHOWN))?;
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
    fn durations_are_parsed() {
        // `forever` is for bans only.
        assert_eq!(parse_duration("2h"), Ok(Duration::from_secs(7_200)));
        assert!(!parse_duration("forever").unwrap_err().contains("forever"));
        for (text, seconds) in [("30s", 30), ("5m", 300), ("1h", 3_600), ("7d", 604_800), ("forever", 0)] {
            assert_eq!(parse_ban_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "1", "h", "0s", "-1h", "1 h", "1y", "99999999999999999999w", "1é"] {
            assert!(parse_ban_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_list_is_shown_without_control_characters() {
        let list = BanList {
            total: 3,
            bans: vec![
                BanSummary {
                    address: "192.0.2.7".into(),
                    reason: "bad\u{1b}bot".into(),
                    since: 0,
                    until: Some(3_600),
                    count: 1,
                },
                BanSummary {
                    address: "2001:db8::/64".into(),
                    ..BanSummary::default()
                },
            ],
            files: vec![BanListFile {
                file: "bans.txt".into(),
                entries: 1_234,
                skipped_lines: 2,
                error: Some("gone".into()),
            }],
        };
        assert_eq!(
            BanListText(&list, 60).to_string(),
            "192.0.2.7              59 min  bad?bot\n2001:db8::/64    until lifted  \nand 1 more\n\
             bans.txt: 1,234 entries, 2 lines skipped, cannot be read: gone\n"
        );
        assert_eq!(BanListText(&BanList::default(), 0).to_string(), "no client is banned\n");
    }
}
