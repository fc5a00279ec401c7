//! What the command line, the GUI and the dashboard may ask of a running RockNet, and what it tells.
//!
//! It holds messages only: no socket, no clock, and nothing of the server. A [`Command`] is asked; a [`Status`] or a list
//! of [`SiteSummary`] is told. Each goes over a wire by serde, and onto a terminal by `Display`. Fields that one side does
//! not know are left out or take their default, so that a server and its observers need not be of one version.
#![forbid(unsafe_code)]

pub mod command;
pub mod site;
pub mod status;

mod text;

pub use command::{Command, UnknownCommand};
pub use site::{SiteKind, SiteList, SiteSummary};
pub use status::{Cache, Mode, Responses, SiteDurations, Status};
