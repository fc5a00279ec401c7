//! Input of the forms about the traffic, and the requests that it makes.

use rocknet_control::ban::{NewBan, parse_ban_duration};
use rocknet_control::response_purge::ResponsePurge;

/// Durations of a ban that the form offers; the empty one is that of the configuration.
pub const BAN_TIMES: [&str; 7] = ["", "30m", "1h", "1d", "7d", "30d", "forever"];

/// Form that bans a client or network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BanForm {
    /// Address or network.
    pub address: String,
    /// One of [`BAN_TIMES`].
    pub time: String,
    pub reason: String,
}

/// Stored responses that a form drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DropSelection {
    #[default]
    Url,
    /// All URLs with this beginning.
    Prefix,
    Tag,
    All,
}

/// Form that drops stored responses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DropForm {
    pub selection: DropSelection,
    /// URL, beginning of URLs, or tag.
    pub text: String,
    /// Name of the website whose responses are dropped; empty for all websites.
    pub site: String,
}

impl DropSelection {
    /// All selections.
    pub const ALL: [DropSelection; 4] = [
        DropSelection::Url,
        DropSelection::Prefix,
        DropSelection::Tag,
        DropSelection::All,
    ];

    /// Returns the word that stands for the selection in a choice.
    pub fn word(self) -> &'static str {
        match self {
            DropSelection::Url => "url",
            DropSelection::Prefix => "prefix",
            DropSelection::Tag => "tag",
            DropSelection::All => "all",
        }
    }
}

impl BanForm {
    /// Returns the ban; `None` while no address is filled in.
    pub fn request(&self) -> Option<NewBan> {
        let address = Some(self.address.trim()).filter(|address| !address.is_empty())?;
        Some(NewBan {
            address: address.to_owned(),
            seconds: parse_ban_duration(&self.time).ok().map(|time| time.as_secs()),
            reason: self.reason.trim().to_owned(),
        })
    }
}

impl DropForm {
    /// Returns the responses to drop; `None` while the form is not complete. An empty text never stands for all
    /// responses.
    pub fn request(&self) -> Option<ResponsePurge> {
        let filled = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let purge = ResponsePurge {
            site: filled(&self.site),
            ..ResponsePurge::default()
        };
        // The fields of the request are options. `?` below tests the outer option, which is `None` without a text.
        let text = Some(filled(&self.text)).filter(Option::is_some);
        Some(match self.selection {
            DropSelection::Url => ResponsePurge { url: text?, ..purge },
            DropSelection::Prefix => ResponsePurge { prefix: text?, ..purge },
            DropSelection::Tag => ResponsePurge { tag: text?, ..purge },
            DropSelection::All => purge,
        })
    }
}
