//! `rocknet run`: serves a configuration, or the default page where there is none.

use std::path::PathBuf;

use rocknet::certificates::Disk;
use rocknet_config::{Config, Loaded};

use super::running::{self, Origin, Plan};
use super::{Failure, search, serve};

/// Serve a configuration
///
/// Looks for ./rocknet.toml, then for /etc/rocknet/rocknet.toml. Where there is neither, the default page is served on
/// 127.0.0.1:8080, or on the next free port.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The configuration to serve
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Take commands on standard input though it is no terminal
    #[arg(long, hide = true)]
    pub console: bool,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    match options.config.clone().or_else(search::find) {
        Some(file) => {
            let Loaded { config, warnings } =
                rocknet_config::load(&file, &Disk::new()).map_err(Failure::Configuration)?;
            let plan = Plan {
                warnings,
                origin: Origin::File(file),
                notes: Vec::new(),
                console: options.console,
                open: false,
            };
            running::run(config, plan)
        }
        None => welcome(options.console),
    }
}

fn welcome(console: bool) -> Result<(), Failure> {
    serve::on_next_free(|port, listen, mut notes| {
        notes.push(format!(
            "There is no rocknet.toml here yet. To serve a folder, type `rocknet serve FOLDER`; to keep it, write\n\
             rocknet.toml, and start again:\n\n  [site.\":{port}\"]\n  root = \"FOLDER\""
        ));
        let plan = Plan {
            warnings: Vec::new(),
            origin: Origin::Nothing,
            notes,
            console,
            open: false,
        };
        (Config::welcome(listen), plan)
    })
}
