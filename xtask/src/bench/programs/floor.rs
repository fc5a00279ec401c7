//! Floor programs of `bench/floor`. They do the minimum work of a server process, so they are the unit of the ratios.

use super::{Deployment, Launch, NO_LIMIT, ServerProgram, profile};
use crate::{Failure, repository};
use std::path::PathBuf;

pub const PROGRAM: ServerProgram = ServerProgram {
    name: "floor",
    settings: "one epoll loop; heads are parsed, 13 constant bytes sent with one write per read",
    connections: NO_LIMIT,
    find: || built("floor"),
    version: None,
    configure,
};

pub const FILE: ServerProgram = ServerProgram {
    name: "floor-file",
    settings: "the same loop; a constant head and sendfile of one open file",
    connections: NO_LIMIT,
    find: || built("floor-file"),
    version: None,
    configure: configure_file,
};

pub const H2: ServerProgram = ServerProgram {
    name: "floor-h2",
    settings: "the same loop; only frame headers are parsed, HEADERS and DATA encoded in advance, one write per read",
    connections: NO_LIMIT,
    find: || built("floor-h2"),
    version: None,
    configure: configure_h2,
};

/// FastCGI application behind the measured servers; not measured itself.
pub const FASTCGI: ServerProgram = ServerProgram {
    name: "floor-fastcgi",
    settings: "the same loop; only record headers are parsed, 13 constant bytes sent with one write",
    connections: NO_LIMIT,
    find: || built("floor-fastcgi"),
    version: None,
    configure: |deployment| with_port("floor-fastcgi", deployment),
};

pub const URING: ServerProgram = ServerProgram {
    name: "floor-uring",
    settings: "one ring; heads are parsed, 13 constant bytes sent with one send per receive",
    connections: NO_LIMIT,
    find: || built("floor-uring"),
    version: None,
    configure: configure_uring,
};

pub const TUNNEL: ServerProgram = ServerProgram {
    name: "floor-tunnel",
    settings: "the same loop; all bytes after an upgrade are echoed",
    connections: NO_LIMIT,
    find: || built("floor-tunnel"),
    version: None,
    configure: configure_tunnel,
};

pub const SLOW: ServerProgram = ServerProgram {
    name: "floor-slow",
    settings: "a thread for each connection; 13 constant bytes after 2 ms",
    connections: NO_LIMIT,
    find: || built("floor-slow"),
    version: None,
    configure: configure_slow,
};

/// Delay of the slow server in milliseconds, like that of a database query.
const DELAY_MS: &str = "2";

/// Returns the target folder of the floor programs, which are a separate workspace.
pub fn target() -> PathBuf {
    repository::target().join("floor")
}

fn built(name: &str) -> Option<PathBuf> {
    Some(target().join(profile()).join(name)).filter(|path| path.exists())
}

fn configure(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    with_port("floor", deployment)
}

fn configure_h2(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    with_port("floor-h2", deployment)
}

fn configure_uring(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    with_port("floor-uring", deployment)
}

fn configure_tunnel(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    with_port("floor-tunnel", deployment)
}

fn configure_slow(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    let mut launch = with_port("floor-slow", deployment)?;
    launch.arguments.push(DELAY_MS.into());
    Ok(launch)
}

fn with_port(name: &str, deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    let program = built(name).ok_or("not built")?;
    Ok(Launch {
        program,
        arguments: vec![deployment.port.to_string().into()],
        configuration: String::new(),
    })
}

fn configure_file(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    let program = built("floor-file").ok_or("not built")?;
    let arguments = vec![
        deployment.port.to_string().into(),
        deployment.site.file(deployment.page)?.into(),
    ];
    Ok(Launch {
        program,
        arguments,
        configuration: String::new(),
    })
}
