//! Messages exchanged with a running RockNet server: commands and reports, for the command line, the GUI and the
//! dashboard.
//!
//! The crate contains only messages. It uses no sockets and no clock, and depends on no other part of the server. A
//! client sends a [`Command`] and receives a [`Status`] or a list of [`SiteSummary`]. These types implement the serde
//! traits for transport and `Display` for terminals. Unknown fields of a report are ignored, and missing fields get
//! their default. A server and its clients may therefore have different versions.
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
