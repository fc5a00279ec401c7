//! Options of a start: the source of the configuration, and what is printed and opened.

use std::path::PathBuf;
use std::sync::Arc;

use rocknet::takeover::Predecessor;
use rocknet_config::Finding;

/// Options of a start, in addition to the configuration.
pub struct LaunchOptions {
    /// Warnings of the configuration check.
    pub warnings: Vec<Finding>,
    /// Source of the configuration, for reloads.
    pub source: ConfigSource,
    /// Paragraphs below the start-up block.
    pub notes: Vec<String>,
    /// True to read commands from standard input even if it is not a terminal.
    pub console: bool,
    /// True to open the first URL in the browser.
    pub open: bool,
    /// Process from which the server takes over its sockets.
    pub predecessor: Option<Arc<Predecessor>>,
    /// List of the addresses of this machine in the start-up block, if a site listens on all of them.
    pub addresses: AddressList,
}

/// List of the URLs by which other machines reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressList {
    /// No list.
    Hidden,
    /// The URLs, printed again when the addresses change.
    Urls,
    /// The URLs, and a QR code of the first one for phones.
    UrlsAndQrCode,
}

/// Source of the configuration. Only a file can be read again by a reload.
pub enum ConfigSource {
    /// A configuration file.
    File(PathBuf),
    /// A folder, served by `rocknet serve`.
    ServedFolder,
    /// The welcome page, without a configuration.
    WelcomePage,
}

// A doc comment here would become the description of the command.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct ConsoleOption {
    /// Read terminal commands (status, sites, reload, quit, help) from standard input even if it is not a terminal
    #[arg(long)]
    pub console: bool,
}
