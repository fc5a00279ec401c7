//! Options of a start: the origin of the configuration, and what is printed and opened.

use std::path::PathBuf;

use rocknet_config::Finding;

/// Options of a start beside the configuration.
pub struct LaunchOptions {
    pub warnings: Vec<Finding>,
    pub source: ConfigSource,
    /// Paragraphs below the start-up block.
    pub notes: Vec<String>,
    /// Takes commands from standard input even if it is no terminal.
    pub console: bool,
    /// Opens the first URL in the browser.
    pub open: bool,
    /// Lists the addresses of this machine in the start-up block, where a site listens on all of them.
    pub shows_addresses: bool,
}

/// ConfigSource of the configuration, from which it can be read again.
pub enum ConfigSource {
    File(PathBuf),
    /// `rocknet serve`
    ServedFolder,
    /// The default page.
    DefaultPage,
}

#[derive(Debug, Clone, Copy, clap::Args)]
pub struct ConsoleOption {
    /// Take the commands of the terminal (status, sites, reload, quit, help) from standard input even if it is none
    #[arg(long)]
    pub console: bool,
}
