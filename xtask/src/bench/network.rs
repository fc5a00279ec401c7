//! The network of a run: loopback with the congestion control that Linux comes with, whatever this machine is set to.
//!
//! Others shape what loopback carries: BBR paces a sender that keeps its socket full by timers, and moves its work to the
//! receiver's core, so that the server that is faster than the load gets the worse figure. Where the machine is set to
//! another one, the run goes on in a network of its own.

use crate::Failure;
use crate::command::{command, find, output, run as run_command};
use std::env;
use std::net::{TcpListener, TcpStream};

/// What Linux comes with.
const DEFAULT: &str = "cubic";

/// What rules connections over loopback, as the server's end of one has it.
pub fn congestion_control() -> String {
    let query = || {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let _client = TcpStream::connect(listener.local_addr()?)?;
        let (accepted, _) = listener.accept()?;
        Ok::<_, std::io::Error>(rustix::net::sockopt::tcp_congestion(&accepted)?)
    };
    query().unwrap_or_else(|_| "unknown".into())
}

/// Whether loopback is ruled by another one than usual, and we may make a network where it is not.
pub fn is_namespace_needed() -> bool {
    let made = || output(command("unshare").args(["--net", "ip", "link", "set", "lo", "up"]));
    congestion_control() != DEFAULT && find("unshare").is_some() && find("ip").is_some() && made().is_ok()
}

/// Starts this program once more, in a network that has nothing but loopback, with all that was built already.
pub fn run_in_namespace(is_built: bool, load_before: f64) -> Result<(), Failure> {
    println!(
        "this machine's congestion control is {}: a network of our own has {DEFAULT}",
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

/// Sets up loopback in a new network.
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
