//! Runs the bench over loopback with Linux's default congestion control, even if the machine uses another one.
//!
//! BBR paces a sender that keeps its socket full. The pacing uses timers and moves the sender's work to the receiver's
//! core. A server that is faster than the load generator then gets the worse figure. If the machine uses another
//! congestion control, the run continues in a network namespace.

use crate::Failure;
use crate::command::{command, find, output, run as run_command};
use std::env;
use std::net::{TcpListener, TcpStream};

/// Linux's default congestion control.
const DEFAULT: &str = "cubic";

/// Returns the congestion control of loopback connections, read from the server's end of a new one.
pub fn congestion_control() -> String {
    let query = || {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let _client = TcpStream::connect(listener.local_addr()?)?;
        let (accepted, _) = listener.accept()?;
        Ok::<_, std::io::Error>(rustix::net::sockopt::tcp_congestion(&accepted)?)
    };
    query().unwrap_or_else(|_| "unknown".into())
}

/// Returns true if the run needs a namespace and one can be created: loopback has another congestion control than the
/// default, or the servers must be reachable from another namespace and from nowhere else (`has_other_hosts`).
pub fn is_namespace_needed(has_other_hosts: bool) -> bool {
    let made = || output(command("unshare").args(["--net", "ip", "link", "set", "lo", "up"]));
    (has_other_hosts || congestion_control() != DEFAULT)
        && find("unshare").is_some()
        && find("ip").is_some()
        && made().is_ok()
}

/// Runs this program again in a network namespace with only loopback, using the existing builds.
pub fn run_in_namespace(is_built: bool, load_before: f64) -> Result<(), Failure> {
    println!(
        "the run continues in a network namespace with {DEFAULT}; this machine's congestion control is {}",
        congestion_control()
    );
    let arguments = env::args_os().skip(1);
    let mut again = command("unshare");
    again.arg("--net").arg(env::current_exe()?).args(arguments);
    if !is_built {
        again.arg("--built");
    }
    run_command(again.args(["--own-network", &load_before.to_string()]))
}

/// Configures loopback in a new network namespace.
pub fn set_up() -> Result<(), Failure> {
    run_command(command("ip").args(["link", "set", "lo", "up"]))?;
    for addresses in ["127.0.0.0/8", "127.0.0.1"] {
        let route = format!(
            "route replace local {addresses} dev lo proto kernel scope host src 127.0.0.1 table local congctl {DEFAULT}"
        );
        run_command(command("ip").args(route.split(' ')))?;
    }
    Ok(())
}
