//! HAProxy from Debian, a proxy that serves no files.

use super::{Deployment, Launch, ServerProgram, user, write};
use crate::Failure;
use crate::bench::variant::Variant;
use crate::command::find;

/// Connection limit of all rows except that of tunnels. HAProxy needs two descriptors for each connection, and does not
/// start if the descriptor limit is lower.
const CONNECTIONS: u32 = 4_000;

/// Connection limit of the row of tunnels, which needs a higher descriptor limit anyway.
const TUNNELS: u32 = 9_900;

pub const PROGRAM: ServerProgram = ServerProgram {
    name: "haproxy",
    settings: "one thread, no log, upstream connections shared and kept open",
    connections: CONNECTIONS,
    find: || find("haproxy"),
    version: Some("-v"),
    configure,
};

fn configure(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    let servers = deployment.upstreams.iter().enumerate();
    let servers: String = servers
        .map(|(number, port)| format!("  server s{number} 127.0.0.1:{port}\n"))
        .collect();
    let is_tunnelled = deployment.variant == Variant::Tunnels;
    let configuration = format!(
        "global
{user}  nbthread 1
  maxconn {maxconn}
defaults
  mode http
  timeout connect 3s
  timeout client 60s
  timeout server 60s
{tunnels}  option http-keep-alive
  http-reuse always
frontend front
  bind 127.0.0.1:{port} backlog 4096
  default_backend behind
backend behind
  balance roundrobin
  option forwardfor
{servers}",
        maxconn = if is_tunnelled { TUNNELS } else { CONNECTIONS },
        tunnels = if is_tunnelled { "  timeout tunnel 1h\n" } else { "" },
        user = user("  user haproxy\n  group haproxy\n"),
        port = deployment.port,
    );
    let program = find("haproxy").ok_or("not installed")?;
    let file = write(deployment, "haproxy.cfg", &configuration)?;
    Ok(Launch {
        program,
        arguments: vec!["-db".into(), "-f".into(), file.into()],
        configuration,
    })
}
