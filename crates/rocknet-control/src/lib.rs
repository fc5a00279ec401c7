//! Messages exchanged with a running RockNet server, and the client that exchanges them. The command line and other
//! programs that control a server use this crate.
//!
//! A program sends a [`Request`](api::Request) with a [`Client`] and receives a [`Status`], a list of [`SiteSummary`]
//! or another reply. A user types a [`Command`] at the terminal of the server. Replies implement the serde traits for
//! transport and `Display` for terminals. Clients ignore unknown fields of a reply. Fields that an older server does
//! not send get a default. A server and its clients may therefore have different versions. The client needs Unix
//! sockets; on other systems, only the messages are available.
//!
//! ```
//! use rocknet_control::Command;
//!
//! assert_eq!(Command::parse("stat"), Ok(Some(Command::Status)));
//! let unknown = Command::parse("relaod").unwrap_err();
//! assert_eq!(unknown.to_string(), "unknown command `relaod`; did you mean `reload`?");
//! ```
#![forbid(unsafe_code)]

pub mod api;
pub mod ban;
pub mod certificate;
#[cfg(unix)]
pub mod client;
pub mod command;
pub mod config;
pub mod dashboard;
pub mod doctor;
pub mod durations;
pub mod explanation;
mod level;
mod listening_socket;
pub mod logs;
#[cfg(feature = "schema")]
pub mod openapi;
pub mod php;
mod query;
pub mod response_purge;
pub mod route;
pub mod samples;
pub mod site;
pub mod site_form;
pub mod site_visit;
pub mod status;
pub mod upgrade;
pub mod upstream;

pub mod text;

pub use certificate::{CertificateList, CertificateSummary};
#[cfg(unix)]
pub use client::{Client, ClientError, Peer, ServerAddress};
pub use command::{Command, UnknownCommand};
pub use listening_socket::ListeningSocket;
pub use php::{PhpPoolList, PhpPoolSummary, PhpState};
pub use site::{SiteKind, SiteList, SiteSummary};
pub use status::{Cache, IntervalLoad, Mode, Responses, SiteDurations, Status};
pub use upstream::{UpstreamList, UpstreamState, UpstreamSummary};
