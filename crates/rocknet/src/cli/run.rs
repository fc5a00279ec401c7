//! `rocknet run`: serves a configuration, or the welcome page without one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocknet::certificates::ServerEnvironment;
use rocknet::takeover::Predecessor;
use rocknet_config::{Config, Loaded};
use rocknet_io::service_manager::ServiceEnvironment;

use super::launch::{AddressList, ConfigSource, ConsoleOption, LaunchOptions};
use super::{Failure, running, search, serve};

/// Serve a configuration
///
/// Looks for ./rocknet.toml, then for /etc/rocknet/rocknet.toml. If neither exists, it serves the welcome page on
/// 127.0.0.1:8080, or on the next free port.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub file: search::ConfigFile,
    #[command(flatten)]
    pub console: ConsoleOption,
}

/// The options of `rocknet` without a command: those of `rocknet run` without FILE, which would match every mistyped
/// command.
#[derive(Debug, clap::Args)]
pub struct BareOptions {
    /// The configuration to serve
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub console: ConsoleOption,
}

pub fn run(options: &Options, service: ServiceEnvironment) -> Result<(), Failure> {
    run_file(options.file.named(), options.console.console, service)
}

/// Runs `rocknet` without a command.
pub fn run_bare(options: &BareOptions, service: ServiceEnvironment) -> Result<(), Failure> {
    run_file(options.config.as_deref(), options.console.console, service)
}

/// Serves the file `named`, or else the file that is found, or else the welcome page. Reports a failure to the process
/// that this one replaces, if any. `console`: true to read commands from standard input even if it is not a terminal.
fn run_file(named: Option<&Path>, console: bool, service: ServiceEnvironment) -> Result<(), Failure> {
    let predecessor = Predecessor::from_environment().map_err(Failure::Failed)?.map(Arc::new);
    let served = run_after(predecessor.clone(), named, console, service);
    // After an upgrade that has succeeded, nothing receives the message.
    if let (Some(predecessor), Err(failure)) = (predecessor, &served) {
        predecessor.failed(&failure.to_string());
    }
    served
}

/// Serves the configuration, or the welcome page without one. `predecessor`: process that this one replaces in an
/// upgrade.
fn run_after(
    predecessor: Option<Arc<Predecessor>>,
    named: Option<&Path>,
    console: bool,
    service: ServiceEnvironment,
) -> Result<(), Failure> {
    match named.map(Path::to_path_buf).or_else(search::find) {
        Some(file) => {
            let Loaded { config, warnings } =
                rocknet_config::load(&file, &ServerEnvironment::new()).map_err(Failure::Configuration)?;
            let options = LaunchOptions {
                warnings,
                source: ConfigSource::File(search::absolute(&file)),
                notes: Vec::new(),
                console,
                open: false,
                predecessor,
                addresses: AddressList::Hidden,
            };
            running::run(config, options, service)
        }
        None => welcome(console, service),
    }
}

/// Serves the welcome page. There is no predecessor, because only a server with a configuration file can be upgraded.
fn welcome(console: bool, service: ServiceEnvironment) -> Result<(), Failure> {
    serve::on_next_free(service, Some(serve::LOOPBACK), |port, listen, mut notes| {
        notes.push(format!(
            "There is no rocknet.toml here yet. To serve a folder, type `rocknet serve FOLDER`; to serve it\n\
             permanently, write rocknet.toml and start again:\n\n  [site.\":{port}\"]\n  root = \"FOLDER\""
        ));
        let options = LaunchOptions {
            warnings: Vec::new(),
            source: ConfigSource::WelcomePage,
            notes,
            console,
            open: false,
            predecessor: None,
            addresses: AddressList::Hidden,
        };
        (Config::welcome(listen), options)
    })
}
