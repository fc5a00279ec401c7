//! `rocknet php`: lists the pools of PHP of a running server, and restarts, stops or starts one.

use rocknet_control::api::Request;
use rocknet_control::php::PhpPoolName;
use rocknet_control::{PhpPoolList, PhpPoolSummary};

use super::remote::{Target, print_done, print_json};
use super::{Failure, print};

/// List the PHP that the running server manages, or restart, stop or start a pool
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Start new processes in the pool with this name; the old ones complete their requests
    #[arg(long, value_name = "NAME")]
    restart: Option<String>,
    /// End the processes of the pool with this name once their requests are complete, until it is started again
    #[arg(long, value_name = "NAME", conflicts_with = "restart")]
    stop: Option<String>,
    /// Start the pool with this name, which was stopped or has failed
    #[arg(long, value_name = "NAME", conflicts_with_all = ["restart", "stop"])]
    start: Option<String>,
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn php(options: &Options) -> Result<(), Failure> {
    let named = |name: &String| PhpPoolName { name: name.clone() };
    let restart = options
        .restart
        .as_ref()
        .map(|name| Request::RestartPhpPool(named(name)));
    let stop = options.stop.as_ref().map(|name| Request::StopPhpPool(named(name)));
    let start = options.start.as_ref().map(|name| Request::StartPhpPool(named(name)));
    if let Some(request) = restart.or(stop).or(start) {
        return print_done(&options.target.call(&request)?, options.json);
    }
    let pools: Vec<PhpPoolSummary> = options.target.call(&Request::PhpPools)?;
    if options.json {
        return print_json(&pools);
    }
    print(PhpPoolList(&pools));
    Ok(())
}
