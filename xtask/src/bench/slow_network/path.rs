//! Network path: a client's network namespace that reaches this one only through the relay.

use super::link::{Conditions, Link, RATE};
use super::relay::{Counters, carry};
use super::tun;
use crate::Failure;
use crate::command::{command, output};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Addresses of the two ends, from the block for benchmarks of networks (RFC 2544, appendix C.2.2).
pub const SERVER_ADDRESS: &str = "198.18.0.1";
const CLIENT_ADDRESS: &str = "198.18.0.2";
/// Interface of the server's end. It has a short name, because names of interfaces have at most 15 bytes.
const SERVER_DEVICE: &str = "slow-server";
const CLIENT_DEVICE: &str = "slow-client";
/// Congestion control of TCP at both ends: the default of Linux, and the one that both servers use in QUIC.
const CONGESTION_CONTROL: &str = "cubic";

/// A path that exists until it is dropped.
pub struct NetworkPath {
    client: ClientNamespace,
    /// Counters of the direction towards the client.
    pub to_client: Arc<Counters>,
}

impl NetworkPath {
    /// Creates a path with this round-trip time and probability of loss in each direction. Paths with the same `seed`
    /// lose the same packets of a sequence.
    pub fn create(round_trip: Duration, loss: f64, seed: u64) -> Result<NetworkPath, Failure> {
        let client = ClientNamespace::create()?;
        let server_device = tun::create(SERVER_DEVICE).map_err(|error| format!("/dev/net/tun: {error}"))?;
        let client_device = tun::create(CLIENT_DEVICE)?;
        ip(&["link", "set", CLIENT_DEVICE, "netns", &client.pid()])?;
        for arguments in connect(SERVER_DEVICE, SERVER_ADDRESS, CLIENT_ADDRESS) {
            ip(&words(&arguments))?;
        }
        client.ip("link set lo up")?;
        for arguments in connect(CLIENT_DEVICE, CLIENT_ADDRESS, SERVER_ADDRESS) {
            client.ip(&arguments)?;
        }
        // Otherwise Linux would use measurements of earlier connections to the same address.
        ip(&["tcp_metrics", "flush", "all"])?;
        let delay = round_trip / 2;
        let conditions = |rate| Conditions { rate, delay, loss };
        let to_client = carry(&server_device, &client_device, Link::new(conditions(Some(RATE)), seed))?;
        // Another seed, so that the directions lose different packets.
        carry(&client_device, &server_device, Link::new(conditions(None), !seed))?;
        Ok(NetworkPath { client, to_client })
    }

    /// Returns the command that runs a program at the client's end.
    pub fn at_client(&self) -> Vec<OsString> {
        self.client.enter()
    }
}

impl Drop for NetworkPath {
    /// Deletes the devices. The relay's threads then end, because nothing more can be read.
    fn drop(&mut self) {
        let _ = self.client.ip(&format!("link delete {CLIENT_DEVICE}"));
        let _ = ip(&["link", "delete", SERVER_DEVICE]);
    }
}

/// Returns the arguments for `ip` that connect a device to the other end.
fn connect(device: &str, address: &str, peer: &str) -> [String; 3] {
    [
        format!("address add {address} peer {peer} dev {device}"),
        format!("link set {device} up"),
        format!("route replace {peer} dev {device} src {address} congctl {CONGESTION_CONTROL}"),
    ]
}

fn ip(arguments: &[&str]) -> Result<(), Failure> {
    output(command("ip").args(arguments)).map(drop)
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// Network namespace that a waiting process keeps alive. The process ends with this program, because its input then
/// ends.
struct ClientNamespace(Child);

impl ClientNamespace {
    fn create() -> Result<ClientNamespace, Failure> {
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--net", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut namespace = ClientNamespace(unshare.spawn()?);
        // The process returns the line only once it is in its namespace.
        if let (Some(input), Some(output)) = (&mut namespace.0.stdin, &mut namespace.0.stdout) {
            input.write_all(b"ready\n")?;
            let mut line = String::new();
            BufReader::new(output).read_line(&mut line)?;
            if line == "ready\n" {
                return Ok(namespace);
            }
        }
        Err("the network namespace of the client cannot be created: run this as root".into())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn enter(&self) -> Vec<OsString> {
        vec!["nsenter".into(), "--net".into(), "--target".into(), self.pid().into()]
    }

    fn ip(&self, arguments: &str) -> Result<(), Failure> {
        let words = self.enter();
        output(
            command(&words[0])
                .args(&words[1..])
                .arg("ip")
                .args(arguments.split(' ')),
        )
        .map(drop)
    }
}

impl Drop for ClientNamespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
