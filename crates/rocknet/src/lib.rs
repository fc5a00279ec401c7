//! RockNet, the web server: sites, files and errors over HTTP, on workers that share nothing.
//!
//! It never speaks to the kernel itself; that is `rocknet-io`. It never parses a wire; that is `rocknet-proto`.
#![forbid(unsafe_code)]

pub mod accounts;
pub mod address;
pub mod backend;
pub mod blocking;
mod byte_budget;
pub mod cache;
pub mod certificates;
pub mod clock;
pub mod dispatch;
pub mod exchange;
pub mod filter;
pub mod forwarded;
pub mod group;
pub mod guard;
pub mod handler;
pub mod interim;
pub mod log;
pub mod metrics;
pub mod open_file;
pub mod open_folder;
pub mod pages;
pub mod php;
pub mod preload;
pub mod prepared;
pub mod program;
pub mod protocol;
pub mod report;
pub mod response;
pub mod routing;
pub mod scope;
pub mod server;
pub mod site;
pub mod snapshot;
pub mod spool;
pub mod transport;
pub mod trust;
pub mod tunnel;
pub mod turn;
pub mod worker;
