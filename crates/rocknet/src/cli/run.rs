//! `rocknet run`: serves a configuration, or the default page where there is none.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use rocknet_config::environment::System;
use rocknet_config::model::Listen;
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
            let Loaded { config, warnings } = rocknet_config::load(&file, &System).map_err(Failure::Configuration)?;
            let origin = Origin::File(file);
            running::run(Plan {
                config,
                warnings,
                origin,
                notes: Vec::new(),
                console: options.console,
                open: false,
            })
        }
        None => welcome(options.console),
    }
}

fn welcome(console: bool) -> Result<(), Failure> {
    let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
    serve::on_next_free(ip, |port, mut notes| {
        let config = Config::welcome(Listen::Tcp {
            address: Some(ip),
            port,
        });
        notes.push(format!(
            "There is no rocknet.toml here yet. To serve a folder, type `rocknet serve FOLDER`; to keep it, write\n\
             rocknet.toml, and start again:\n\n  [site.\":{port}\"]\n  root = \"FOLDER\""
        ));
        Plan {
            config,
            warnings: Vec::new(),
            origin: Origin::Nothing,
            notes,
            console,
            open: false,
        }
    })
}
