//! Clients with many failed requests, and bans, for the picture of the page *Traffic*.

use super::account::Account;
use crate::Failure;
use crate::command::output;
use rocknet_control::api::{Done, Request};
use rocknet_control::ban::NewBan;
use std::process::Command;

/// Failed requests of a client.
struct Attack {
    /// Address that the trusted proxy names. It belongs to a range for documentation (RFC 5737, RFC 3849).
    client: &'static str,
    /// True for POST requests.
    posts: bool,
    /// URLs, with a range of numbers as curl expands it.
    urls: &'static str,
}

/// Attacks, in this order. The numbers of the first two exceed the default rates of `[ban]`.
const ATTACKS: [Attack; 6] = [
    Attack {
        client: "198.51.100.23",
        posts: true,
        urls: "https://shop.localhost:8443/wp-login.php?[1-12]",
    },
    Attack {
        client: "203.0.113.80",
        posts: false,
        urls: "https://docs.localhost:8443/backup/[1-70].zip",
    },
    Attack {
        client: "203.0.113.17",
        posts: false,
        urls: "https://docs.localhost:8443/old/[1-24].html",
    },
    Attack {
        client: "198.51.100.140",
        posts: true,
        urls: "https://shop.localhost:8443/wp-login.php?[1-6]",
    },
    Attack {
        client: "198.51.100.140",
        posts: false,
        urls: "https://docs.localhost:8443/admin/[1-3]",
    },
    // The folder accepts no POST request.
    Attack {
        client: "2001:db8:7::9",
        posts: true,
        urls: "https://docs.localhost:8443/?[1-8]",
    },
];

/// Bans of the operator: address or network, seconds, and reason. 0 seconds: until the ban is lifted.
const BANS: [(&str, u64, &str); 2] = [
    ("192.0.2.0/24", 0, "copies the pictures of the shop"),
    ("2001:db8:1:2::/64", 7 * 86_400, "sends spam by the contact form"),
];

/// Sends the requests of the attacks, and adds the bans.
pub fn attack(account: &Account) -> Result<(), Failure> {
    for attack in ATTACKS {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--insecure", "--max-time", "60", "--output", "/dev/null"]);
        curl.args(["--header", &format!("X-Forwarded-For: {}", attack.client)]);
        if attack.posts {
            curl.args(["--data", ""]);
        }
        output(curl.arg(attack.urls))?;
    }
    for (address, seconds, reason) in BANS {
        let ban = Request::AddBan(NewBan {
            address: address.to_owned(),
            seconds: Some(seconds),
            reason: reason.to_owned(),
        });
        let done: Option<Done> = account.request(&ban);
        done.ok_or_else(|| format!("the server does not ban {address}"))?;
    }
    Ok(())
}
