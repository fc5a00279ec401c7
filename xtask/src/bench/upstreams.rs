//! Starts the back ends of a measured server on the load core: floor programs, which cost as little as possible, or
//! php-fpm.

use super::content::{self, Site};
use super::cores::LOAD_CORE;
use super::lane::{FLOOR, FLOOR_FILE, FLOOR_SLOW, FLOOR_TUNNEL, Lane, Variant, plain};
use super::programs::{Deployment, Launch, floor};
use super::row::Page;
use super::server::{ServerProcess, free_port};
use crate::Failure;
use crate::command::find;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Running back ends, stopped when dropped.
pub struct Upstreams {
    pub ports: Vec<u16>,
    _servers: Vec<ServerProcess>,
}

/// Number of php-fpm processes: more than the connections of any PHP row, so that no request waits for another.
const PHP_PROCESSES: u32 = 24;
/// Timeout for a back end to accept connections.
const START_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

impl Upstreams {
    /// Starts the back ends of `variant` and waits until each responds.
    pub fn start(site: &Site, variant: Variant, page: Page) -> Result<Self, Failure> {
        let lane: Lane = match (variant, page) {
            // For PHP, php-fpm replaces the program of this lane below.
            (Variant::FastCgi | Variant::Php | Variant::CachedPhp, _) => plain(&floor::FASTCGI),
            (Variant::Tunnels, _) => FLOOR_TUNNEL,
            (Variant::Queued { .. }, _) => FLOOR_SLOW,
            (Variant::Spread(_), _) | (_, Page::Hello) => FLOOR,
            _ => FLOOR_FILE,
        };
        let (mut ports, mut servers) = (Vec::new(), Vec::new());
        while ports.len() < variant.upstreams() as usize {
            let scratch = site.scratch(&format!("upstream-{}", ports.len()))?;
            let port = free_port()?;
            ports.push(port);
            let setting = Deployment {
                port,
                site,
                scratch: &scratch,
                page,
                variant: lane.variant,
                scheme: lane.scheme,
                version: lane.version,
                upstreams: &[],
            };
            let launch = match variant {
                Variant::Php | Variant::CachedPhp => php_fpm(port, &scratch)?,
                Variant::Spread(count) => {
                    let mut launch = lane.server.configure(&setting)?;
                    for _ in 1..count {
                        let port = free_port()?;
                        launch.arguments.push(port.to_string().into());
                        ports.push(port);
                    }
                    launch
                }
                _ => lane.server.configure(&setting)?,
            };
            let mut server = ServerProcess::start_on(LOAD_CORE, &lane, &launch, &[], &scratch)?;
            match variant {
                Variant::FastCgi | Variant::Php | Variant::CachedPhp => wait_for_listener(port)?,
                _ => {
                    server.first_response(&lane, port, &format!("/{}", content::name(page)), &scratch)?;
                }
            }
            servers.push(server);
        }
        Ok(Self {
            ports,
            _servers: servers,
        })
    }
}

fn php_fpm(port: u16, scratch: &Path) -> Result<Launch, Failure> {
    let owner = super::programs::user("user = www-data\n");
    let configuration = format!(
        "[global]\nerror_log = /proc/self/fd/2\ndaemonize = no\n[www]\n{owner}listen = 127.0.0.1:{port}\npm = static\n\
         pm.max_children = {PHP_PROCESSES}\n"
    );
    let file = scratch.join("fpm.conf");
    std::fs::write(&file, &configuration)?;
    Ok(Launch {
        program: find("php-fpm8.2").ok_or("php-fpm is not installed")?,
        arguments: vec!["--fpm-config".into(), file.into()],
        configuration,
    })
}

/// Waits until a process accepts connections on `port`.
fn wait_for_listener(port: u16) -> Result<(), Failure> {
    let deadline = Instant::now() + START_TIMEOUT;
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if Instant::now() > deadline {
            return Err("the FastCGI back end does not accept connections".into());
        }
        sleep(POLL);
    }
    Ok(())
}
