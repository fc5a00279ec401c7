//! `rocknet ban`: lists, adds and lifts bans of the running server.

use std::time::{SystemTime, UNIX_EPOCH};

use rocknet_control::api::Request;
use rocknet_control::ban::{BanList, BanListText, BannedAddress, NewBan, parse_ban_duration};

use super::remote::{Target, print_done, print_json};
use super::{Failure, print};

/// List, add or lift bans of clients of the running server
///
/// Without an action, the bans are listed.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    action: Option<BanAction>,
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum BanAction {
    /// List the banned clients and networks, the latest first
    List,
    /// Ban an address or network
    Add {
        /// Address or network, such as 192.0.2.7 or 192.0.2.0/24
        address: String,
        /// Duration, such as 30m, 1h, 7d or forever; by default `ban.time` of the configuration
        #[arg(long = "for", value_name = "TIME", value_parser = parse_ban_duration)]
        time: Option<std::time::Duration>,
        /// Reason, which the list shows
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
    /// Lift the ban of an address or network
    Lift {
        /// Address or network, as the list shows it
        address: String,
    },
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let request = match options.action.as_ref().unwrap_or(&BanAction::List) {
        BanAction::List => {
            let list: BanList = options.target.call(&Request::Bans)?;
            if options.json {
                return print_json(&list);
            }
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |now| now.as_secs());
            print(BanListText(&list, now));
            return Ok(());
        }
        BanAction::Add { address, time, reason } => Request::AddBan(NewBan {
            address: address.clone(),
            // `parse_ban_duration` returns zero for `forever`, and 0 stands for no end in the request, too.
            seconds: time.map(|time| time.as_secs()),
            reason: reason.clone(),
        }),
        BanAction::Lift { address } => Request::LiftBan(BannedAddress {
            address: address.clone(),
        }),
    };
    print_done(&options.target.call(&request)?, options.json)
}
