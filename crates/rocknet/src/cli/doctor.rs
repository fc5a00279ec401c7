//! `rocknet doctor`: checks the requirements of a server on this machine, and prints how to fix problems.

mod accounts;
mod quic;
mod verdict;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use rocknet::backend::BackendChoice;
use rocknet::certificates::storage::FileStorage;
use rocknet::certificates::{ServerEnvironment, state_folder};
use rocknet::gateway::php;
use rocknet::trust::TrustState;
use rocknet_config::model::{Config, Listen, Sandbox};
use rocknet_config::{Code, Finding, Loaded};
use rocknet_io::descriptors;
use rocknet_io::sandbox;
use rocknet_io::socket::{Address, BindErrorKind, ListenOptions, Listener};
use serde_json::json;

use super::{ExitStatus, Failure, print, remote, search, trust};
pub use verdict::Check;
use verdict::Verdict;

/// Check the requirements of the server on this machine, and show what is missing
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub file: search::ConfigFile,
    /// Print the results as JSON, for programs
    #[arg(long)]
    pub json: bool,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let file = options.file.named().map(Path::to_path_buf).or_else(search::find);
    let file = file.map(|file| search::absolute(&file));
    let running = remote::running(file.as_deref());
    let served = running.map(|status| listening_addresses(&status.listeners));
    let checks = checks(file.as_deref(), &served.unwrap_or_default());
    print_checks(&checks, options.json);
    if checks.iter().any(|check| check.verdict == Verdict::Bad) {
        return Err(Failure::Reported(ExitStatus::Failed));
    }
    Ok(())
}

/// Returns the addresses of the URLs at which a server listens. For an unspecified address, such as 0.0.0.0, the result
/// also contains the address without an IP, which means all addresses of the machine. URLs of Unix sockets are left
/// out.
fn listening_addresses(urls: &[String]) -> BTreeSet<Address> {
    let sockets = urls.iter().filter_map(|url| url.split_once("://")?.1.parse().ok());
    let addresses = |socket: SocketAddr| {
        let (ip, port) = (socket.ip(), socket.port());
        let all = ip.is_unspecified().then_some(Address::Tcp { ip: None, port });
        [Address::Tcp { ip: Some(ip), port }].into_iter().chain(all)
    };
    sockets.flat_map(addresses).collect()
}

/// Runs all checks for a configuration. `served`: addresses that the running server of the configuration listens at.
pub fn checks(file: Option<&Path>, served: &BTreeSet<Address>) -> Vec<Check> {
    let mut checks = Vec::new();
    let config = configuration(file, &mut checks);
    if let Some(config) = &config {
        ports(config, served, &mut checks);
        // A running server has already logged the UDP ports that it could not open.
        if served.is_empty() {
            checks.extend(quic::check(config, MAX_PORTS));
        }
        state(config, &mut checks);
        checks.extend(accounts::check(config));
        local_ca(config, &mut checks);
        checks.push(backend(config));
        checks.push(sandbox_support(config));
        checks.extend(managed_php(config));
    }
    checks.push(open_files());
    checks
}

/// Loads the configuration and adds its checks. Returns `None` if it has an error that concerns all sites.
fn configuration(file: Option<&Path>, checks: &mut Vec<Check>) -> Option<Config> {
    const SUBJECT: &str = "configuration";
    let Some(file) = file else {
        checks.push(Check::fair(
            SUBJECT,
            "no configuration exists yet: `rocknet serve DIR` works without one, `rocknet run` serves the welcome page",
        ));
        return Some(Config::default());
    };
    match rocknet_config::load(file, &ServerEnvironment::new()) {
        Ok(Loaded { config, warnings }) => {
            // Errors of single sites are among the warnings, because the other sites can be served.
            let (of_sites, others): (Vec<_>, Vec<_>) = warnings
                .iter()
                .partition(|finding| finding.is_error() || finding.code == Code::Certificate);
            checks.push(match others.first() {
                None => Check::good(SUBJECT, format!("{}, sites: {}", file.display(), config.sites.len())),
                Some(first) => {
                    let found = format!(
                        "{}: {}; `rocknet check` shows all findings",
                        file.display(),
                        first.message
                    );
                    Check::fair(SUBJECT, found)
                }
            });
            checks.extend(of_sites.into_iter().take(MAX_SITES).map(of_site));
            Some(config)
        }
        Err(report) => {
            let first = report.findings.iter().find(|finding| finding.is_error());
            let first = first.map_or("", |finding| finding.message.as_str());
            checks.push(Check::bad(
                SUBJECT,
                format!("{}: {first}; `rocknet check` shows all findings", file.display()),
            ));
            None
        }
    }
}

/// Returns the check for a finding that keeps one site from being served or trusted.
fn of_site(finding: &Finding) -> Check {
    let help = finding.help.as_deref().unwrap_or_default();
    let found = format!("{}; {help}", finding.message);
    if finding.is_error() {
        Check::bad("site", found)
    } else {
        Check::fair("site", found)
    }
}

/// Binds each TCP address of the sites, at most [`MAX_PORTS`], and closes the socket again, because no other check is
/// as reliable.
fn ports(config: &Config, served: &BTreeSet<Address>, checks: &mut Vec<Check>) {
    let all: BTreeSet<&Listen> = config.sites.iter().flat_map(|site| &site.listen).collect();
    for listen in all.into_iter().take(MAX_PORTS) {
        let Listen::Tcp { address, port } = listen else {
            continue;
        };
        let address = Address::Tcp {
            ip: *address,
            port: *port,
        };
        if served.contains(&address) {
            checks.push(Check::good("port", format!("{address} is served")));
            continue;
        }
        checks.push(match Listener::bind(&address, ListenOptions::default()) {
            Ok(_) => Check::good("port", format!("{address} can be bound")),
            Err(error) => match &error.kind {
                // Most likely the port belongs to a running RockNet.
                BindErrorKind::InUse(_) => Check::fair("port", error.to_string()),
                _ => Check::bad("port", error.to_string()),
            },
        });
    }
}

/// Checks that the state folder can be written.
fn state(config: &Config, checks: &mut Vec<Check>) {
    let path = state_folder(config);
    checks.push(match FileStorage::new(&path).check_writable() {
        Ok(()) => Check::good("state", format!("{} can be written", path.display())),
        Err(error) => {
            let found = format!(
                "{} cannot be written: {error}; write state = \"FOLDER\" below [server], or make this user its owner",
                path.display()
            );
            Check::bad("state", found)
        }
    });
}

/// Checks that each trust store of this machine trusts the local CA, if there is one.
fn local_ca(config: &Config, checks: &mut Vec<Check>) {
    const SUBJECT: &str = "local CA";
    match trust::inspect(&state_folder(config)) {
        Ok(None) => checks.push(Check::good(
            SUBJECT,
            "no local CA exists yet, because no site has needed one".to_owned(),
        )),
        Ok(Some(stores)) if stores.is_empty() => {
            checks.push(Check::fair(SUBJECT, "this machine has no trust store"));
        }
        Ok(Some(stores)) => checks.extend(stores.into_iter().map(|(store, found)| match found {
            TrustState::Trusted => Check::good(SUBJECT, format!("trusted by {store}")),
            TrustState::NotTrusted => Check::fair(SUBJECT, format!("not trusted by {store}: type `rocknet trust`")),
            TrustState::Unknown(why) => {
                Check::fair(SUBJECT, format!("cannot determine whether {store} trusts it: {why}"))
            }
        })),
        Err(Failure::Failed(why)) => checks.push(Check::bad(SUBJECT, why)),
        // `inspect` returns no other error.
        Err(_) => {}
    }
}

/// Checks that the configured I/O back end is available.
fn backend(config: &Config) -> Check {
    match BackendChoice::new(config.server.backend) {
        Ok(choice) => Check::good("sockets", choice.to_string()),
        Err(error) => Check::bad("sockets", error),
    }
}

/// Checks which limits the kernel can set. `rocknet status` shows those in effect.
fn sandbox_support(config: &Config) -> Check {
    const SUBJECT: &str = "sandbox";
    let configured = config.server.sandbox;
    let support = [
        ("seccomp", sandbox::can_deny_system_calls()),
        ("Landlock of Linux 5.19", sandbox::can_limit_writes()),
    ];
    let lacking: Vec<_> = support
        .iter()
        .filter(|(_, is_there)| !is_there)
        .map(|(name, _)| *name)
        .collect();
    let lacking = lacking.join(" and ");
    match configured {
        Sandbox::Off => Check::fair(SUBJECT, "switched off by `sandbox` below [server]"),
        _ if lacking.is_empty() => Check::good(SUBJECT, "the kernel has seccomp and Landlock".to_owned()),
        Sandbox::Strict => Check::bad(
            SUBJECT,
            format!("`sandbox = \"strict\"` needs {lacking}, which this system lacks"),
        ),
        Sandbox::Auto => Check::fair(SUBJECT, format!("this system lacks {lacking}")),
    }
}

/// Checks the versions of PHP that RockNet starts.
fn managed_php(config: &Config) -> Vec<Check> {
    if !php::is_wanted(config) {
        return Vec::new();
    }
    let missing = php::missing(config);
    if missing.is_empty() {
        let found: Vec<_> = php::installed().iter().map(php::Installed::version).collect();
        return vec![Check::good("PHP", format!("installed: {}", found.join(", ")))];
    }
    missing.into_iter().map(|missing| Check::bad("PHP", missing)).collect()
}

/// Checks the descriptor limit of the process.
fn open_files() -> Check {
    // The server raises its limit in the same way when it starts.
    descriptors::raise();
    let limit = descriptors::limit();
    if limit < MIN_DESCRIPTORS {
        let found =
            format!("{limit} at most: raise the limit by `ulimit -n {MIN_DESCRIPTORS}`, or LimitNOFILE= in the unit");
        return Check::fair("open files", &found);
    }
    Check::good("open files", format!("{limit} at most"))
}

fn print_checks(checks: &[Check], json: bool) {
    if json {
        let check = |check: &Check| {
            let verdict = check.verdict.word();
            json!({ "check": check.subject, "verdict": verdict, "found": check.found })
        };
        let checks: Vec<_> = checks.iter().map(check).collect();
        return print(format_args!("{:#}\n", json!({ "checks": checks })));
    }
    let mut out = String::new();
    for check in checks {
        let _ = writeln!(out, "{:4}  {:14} {}", check.verdict.word(), check.subject, check.found);
    }
    print(out);
}

/// Maximum number of findings about sites; `rocknet check` shows all.
const MAX_SITES: usize = 64;

/// Maximum number of TCP ports that are checked, and of UDP ports. The start of the server reports errors of further
/// ports.
const MAX_PORTS: usize = 64;

/// Minimum descriptor limit for a few thousand connections with their files.
const MIN_DESCRIPTORS: u64 = 8_192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unspecified_address_also_stands_for_all_addresses() {
        let urls = ["http://0.0.0.0:80", "https://[::1]:443", "unix:/run/a.sock"].map(str::to_owned);
        let tcp = |ip: Option<&str>, port| Address::Tcp {
            ip: ip.map(|ip| ip.parse().expect("an address")),
            port,
        };
        let expected = [tcp(None, 80), tcp(Some("0.0.0.0"), 80), tcp(Some("::1"), 443)];
        assert_eq!(listening_addresses(&urls), BTreeSet::from(expected));
    }
}
