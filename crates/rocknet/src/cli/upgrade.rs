//! `rocknet upgrade`: replaces the program of the running server without a gap.

use std::path::{Path, PathBuf};

use rocknet_control::api::Request;
use rocknet_control::upgrade::UpgradeOrder;

use super::Failure;
use super::remote::{Target, print_done};

/// Replace the program of the running server without a gap
///
/// Starts the program from the same path again. The new process takes over all ports, and the old one finishes its
/// connections and ends. If the new process fails, the old one continues.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The program to start; by default the path from which the server was started
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    binary: Option<PathBuf>,
    // The range is that of `rocknet_control::upgrade::TIMEOUTS`.
    /// Seconds until the new process has to be ready; by default 30
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=50))]
    timeout: Option<u64>,
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let binary = options.binary.as_deref().map(absolute).transpose()?;
    let order = UpgradeOrder {
        binary,
        timeout: options.timeout,
    };
    print_done(&options.target.call(&Request::Upgrade(order))?, options.json)
}

/// Returns the absolute path as text, because the server may have another working directory.
fn absolute(path: &Path) -> Result<String, Failure> {
    let absolute = std::path::absolute(path).map_err(|error| Failure::Failed(error.to_string()))?;
    let text = absolute.into_os_string().into_string();
    text.map_err(|path| Failure::Failed(format!("the path {} is not valid UTF-8", path.display())))
}
