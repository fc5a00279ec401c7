//! `rocknet dashboard`: prints a link that signs a browser in to the dashboard of the running server.

use rocknet_control::api::Request;
use rocknet_control::dashboard::DashboardLink;

use super::remote::{Target, print_json};
use super::{Failure, browser, print};

/// Print a link that signs a browser in to the dashboard of the running server
///
/// The link is valid once, for five minutes. The browser that opens it first controls the server.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Open the link in the browser
    #[arg(short, long)]
    open: bool,
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let link: DashboardLink = options.target.call(&Request::DashboardLink)?;
    if options.json {
        print_json(&link)?;
    } else {
        print(format_args!("{}\n", link.url));
    }
    if options.open {
        browser::open(&link.url);
    }
    Ok(())
}
