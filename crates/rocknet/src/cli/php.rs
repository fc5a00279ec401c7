//! `rocknet php`: lists the pools of PHP of a running server, and restarts one.

use rocknet_control::api::Request;
use rocknet_control::php::PhpPoolName;
use rocknet_control::{PhpPoolList, PhpPoolSummary};

use super::remote::{Target, print_done, print_json};
use super::{Failure, print};

/// List the PHP that the running server manages, or restart a pool
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Start new processes in the pool with this name; the old ones complete their requests
    #[arg(long, value_name = "NAME")]
    restart: Option<String>,
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn php(options: &Options) -> Result<(), Failure> {
    if let Some(name) = &options.restart {
        let request = Request::RestartPhpPool(PhpPoolName { name: name.clone() });
        return print_done(&options.target.call(&request)?, options.json);
    }
    let pools: Vec<PhpPoolSummary> = options.target.call(&Request::PhpPools)?;
    if options.json {
        return print_json(&pools);
    }
    print(PhpPoolList(&pools));
    Ok(())
}
