//! Checks the TCP ports of the configuration, and names the processes that hold them.

use rocknet::snapshot::addresses;
use rocknet_io::socket::{Address, BindErrorKind, ListenOptions, Listener};

use super::facts::DoctorFacts;
use super::holder;
use super::verdict::Check;

const SUBJECT: &str = "port";

/// Maximum number of TCP ports to check, and of UDP ports. The server reports errors of further ports when it starts.
pub(super) const MAX_PORTS: usize = 64;

/// Binds each TCP address and closes the socket again, because no other check is as reliable.
pub(super) fn check(facts: &DoctorFacts<'_>) -> Vec<Check> {
    let tcp = |address: &Address| matches!(address, Address::Tcp { .. });
    let addresses = addresses(facts.config).into_iter().filter(tcp).take(MAX_PORTS);
    addresses.map(|address| check_port(&address, facts)).collect()
}

fn check_port(address: &Address, facts: &DoctorFacts<'_>) -> Check {
    if facts.running.addresses.tcp.contains(address) {
        return Check::good(SUBJECT, format!("{address} is served"));
    }
    let error = match Listener::bind(address, ListenOptions::default()) {
        Ok(_) => return Check::good(SUBJECT, format!("{address} can be bound")),
        Err(error) => error,
    };
    let found = error.to_string();
    match &error.kind {
        // Not `bad`, because the port may belong to a RockNet whose addresses are unknown here: one that this user
        // cannot query, or one with another configuration.
        BindErrorKind::InUse(owner) => {
            let check = Check::fair(SUBJECT, "port-in-use", found).place(&address);
            match (owner, address.port()) {
                (Some(owner), _) => check.command(holder::command(owner)),
                (None, Some(port)) => check.command(format!("sudo ss -ltnp 'sport = :{port}'")),
                (None, None) => check,
            }
        }
        BindErrorKind::Denied => match &facts.other_account {
            Some(other) => other.skipped(SUBJECT, &address.to_string()),
            None => Check::bad(SUBJECT, "port-denied", found).place(&address),
        },
        _ => Check::bad(SUBJECT, "port-unusable", found).place(&address),
    }
}
