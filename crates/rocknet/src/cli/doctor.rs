//! `rocknet doctor`: checks the requirements of a server on this machine, and prints how to fix problems.

mod accounts;
mod quic;
mod served;
mod verdict;

use std::fmt::Write as _;
use std::path::Path;

use rocknet::backend::BackendChoice;
use rocknet::certificates::storage::FileStorage;
use rocknet::certificates::{ServerEnvironment, state_folder};
use rocknet::gateway::php;
use rocknet::snapshot::addresses;
use rocknet::trust::TrustState;
use rocknet_config::model::{Config, Sandbox};
use rocknet_config::{Code, Finding, Loaded};
use rocknet_io::descriptors;
use rocknet_io::sandbox;
use rocknet_io::socket::{Address, BindErrorKind, ListenOptions, Listener};
use serde_json::json;

use super::{ExitStatus, Failure, print, search, trust};
pub use served::ServedAddresses;
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
    let (served, server) = match served::running_server(file.as_deref()) {
        Ok(Some(status)) => (ServedAddresses::new(&status.sockets), None),
        Ok(None) => (ServedAddresses::default(), None),
        Err(error) => (ServedAddresses::default(), Some(Check::bad("server", error))),
    };
    let mut checks = checks(file.as_deref(), &served);
    checks.extend(server);
    print_checks(&checks, options.json);
    if checks.iter().any(|check| check.verdict == Verdict::Bad) {
        return Err(Failure::Reported(ExitStatus::Failed));
    }
    Ok(())
}

/// Runs all checks for a configuration. `file`: the configuration, if there is one. `served`: addresses that the
/// running server of the configuration listens at.
pub fn checks(file: Option<&Path>, served: &ServedAddresses) -> Vec<Check> {
    let mut checks = Vec::new();
    let config = configuration(file, &mut checks);
    if let Some(config) = &config {
        ports(config, served, &mut checks);
        checks.extend(quic::check(config, &served.udp, MAX_PORTS));
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
            // Errors of single sites are among the warnings, because the other sites can be served. A warning about a
            // certificate concerns a single site, too.
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
                    Check::fair(SUBJECT, found).command(check_command(file))
                }
            });
            checks.extend(of_sites.into_iter().take(MAX_SITES).map(of_site));
            Some(config)
        }
        Err(report) => {
            let first = report.findings.iter().find(|finding| finding.is_error());
            let first = first.map_or("", |finding| finding.message.as_str());
            let found = format!("{}: {first}; `rocknet check` shows all findings", file.display());
            checks.push(Check::bad(SUBJECT, found).command(check_command(file)));
            None
        }
    }
}

/// Returns the command that shows all findings about a configuration.
fn check_command(file: &Path) -> String {
    let file = file.to_string_lossy();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    match file.chars().all(is_plain) {
        true => format!("rocknet check --config {file}"),
        false => format!("rocknet check --config '{}'", file.replace('\'', r"'\''")),
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

/// Binds each TCP address and closes the socket again, because no other check is as reliable.
fn ports(config: &Config, served: &ServedAddresses, checks: &mut Vec<Check>) {
    let tcp = |address: &Address| matches!(address, Address::Tcp { .. });
    for address in addresses(config).into_iter().filter(tcp).take(MAX_PORTS) {
        if served.tcp.contains(&address) {
            checks.push(Check::good("port", format!("{address} is served")));
            continue;
        }
        checks.push(match Listener::bind(&address, ListenOptions::default()) {
            Ok(_) => Check::good("port", format!("{address} can be bound")),
            Err(error) => match &error.kind {
                // Not `bad`, because the port may belong to a RockNet whose addresses are unknown here: one that this
                // user cannot query, or one with another configuration.
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
            TrustState::NotTrusted => {
                Check::fair(SUBJECT, format!("not trusted by {store}: type `rocknet trust`")).command("rocknet trust")
            }
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
    let check = |message: String| {
        // The message has one text in backquotes: the command that installs the version.
        let command = message.split('`').nth(1).map(str::to_owned);
        Check {
            command,
            ..Check::bad("PHP", message)
        }
    };
    missing.into_iter().map(check).collect()
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
            let mut line = json!({ "check": check.subject, "verdict": verdict, "found": check.found });
            if let Some(command) = &check.command {
                line["command"] = command.as_str().into();
            }
            line
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

/// Maximum number of TCP ports to check, and of UDP ports. The server reports errors of further ports when it starts.
const MAX_PORTS: usize = 64;

/// Minimum descriptor limit for a few thousand connections with their files.
const MIN_DESCRIPTORS: u64 = 8_192;
