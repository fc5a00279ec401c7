//! The commands and reports of a running RockNet server, for the command line, the GUI and the dashboard.
//!
//! The crate contains messages only: no sockets, no clock, and nothing of the server. A client sends a [`Command`] and
//! receives a [`Status`] or a list of [`SiteSummary`]. All of them implement serde for the wire and `Display` for
//! terminals. Unknown fields are ignored and missing ones take their default, so a server and its clients may have
//! different versions.
//!
//! ```
//! use rocknet_control::Command;
//!
//! assert_eq!(Command::parse("stat"), Ok(Some(Command::Status)));
//! let unknown = Command::parse("relaod").unwrap_err();
//! assert_eq!(unknown.to_string(), "unknown command `relaod`; did you mean `reload`?");
//! ```
#![forbid(unsafe_code)]

pub mod command;
pub mod site;
pub mod status;

mod text;

pub use command::{Command, UnknownCommand};
pub use site::{SiteKind, SiteList, SiteSummary};
pub use status::{Cache, Mode, Responses, SiteDurations, Status};
