//! Commands that query or instruct a running server through its control socket.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rocknet::certificates::ServerEnvironment;
use rocknet_config::Config;
use rocknet_config::model::MAX_SHUTDOWN;
use rocknet_control::api::{ApiError, Done, Level, LogLevel, LogLevelChange, Request};
use rocknet_control::response_purge::ResponsePurge;
use rocknet_control::route::{SiteDetail, SiteName};
use rocknet_control::upstream::UpstreamAddress;
use rocknet_control::{
    CertificateList, CertificateSummary, Client, ClientError, SiteList, SiteSummary, Status, UpstreamList,
    UpstreamSummary,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Failure, control, print, print_details, print_warning, search};

/// The server that a command addresses.
#[derive(Debug, clap::Args)]
pub struct Target {
    /// The configuration of the server, which says where its control socket is
    #[arg(short, long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// The control socket; by default the one of the configuration
    #[arg(long, global = true, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    socket: Option<PathBuf>,
}

/// Show the state of the running server
///
/// Connections, requests, responses, durations and cache since the start.
#[derive(Debug, clap::Args)]
pub struct StatusOptions {
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// List the sites of the running server, or show one with its routes and their settings
#[derive(Debug, clap::Args)]
pub struct SitesOptions {
    /// Show this site, named as in the configuration, with the effective settings of its routes
    name: Option<String>,
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Have the running server read its configuration again
///
/// No connection is cut. An invalid configuration changes nothing, and its errors are printed.
#[derive(Debug, clap::Args)]
pub struct ReloadOptions {
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Stop the running server after the responses in progress
#[derive(Debug, clap::Args)]
pub struct StopOptions {
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show or change the level of the error log of the running server
///
/// The new level applies until the next reload. Messages of the levels debug and trace name their module in the field
/// `from`.
#[derive(Debug, clap::Args)]
pub struct LogLevelOptions {
    /// error, warn, info, debug or trace; or default, which gives a module the level of all others again
    #[arg(value_parser = parse_change)]
    level: Option<NewLevel>,
    /// Change the level of one module only, with the modules in it, such as rocknet_proxy
    #[arg(long, value_name = "PATH", requires = "level")]
    module: Option<String>,
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Level that an operator names for a module or for all.
#[derive(Debug, Clone, Copy)]
enum NewLevel {
    Level(Level),
    /// The level of all other modules.
    Default,
}

/// List the certificates of the sites of the running server
#[derive(Debug, clap::Args)]
pub struct CertsOptions {
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// List the upstreams of the running server, or drain one
#[derive(Debug, clap::Args)]
pub struct UpstreamsOptions {
    /// Send no new clients to the upstream with this address, until it is enabled
    #[arg(long, value_name = "ADDRESS", conflicts_with = "enable")]
    drain: Option<String>,
    /// Send new clients to a drained upstream again
    #[arg(long, value_name = "ADDRESS")]
    enable: Option<String>,
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Remove all files from the file cache of the running server, or drop stored responses
///
/// Without options, the file cache is emptied. The options drop responses that sites and routes with `cache` store.
#[derive(Debug, clap::Args)]
pub struct PurgeOptions {
    /// Drop all stored responses
    #[arg(long)]
    responses: bool,
    /// Drop the stored responses of a URL
    #[arg(long, value_name = "URL", conflicts_with_all = ["prefix", "tag"])]
    url: Option<String>,
    /// Drop the stored responses of all URLs that begin with this text
    #[arg(long, value_name = "URL", conflicts_with = "tag")]
    prefix: Option<String>,
    /// Drop the stored responses with a tag of the application
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Drop the stored responses of a site
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Parses a level that an operator names.
pub fn parse_level(name: &str) -> Result<Level, String> {
    Level::from_name(name).ok_or_else(|| {
        let names = Level::ALL.map(Level::name).join(", ");
        format!("the levels are {names}")
    })
}

fn parse_change(name: &str) -> Result<NewLevel, String> {
    match name {
        "default" => Ok(NewLevel::Default),
        name => parse_level(name).map(NewLevel::Level),
    }
}

/// Connection to the server of a command.
struct Connected {
    client: Client,
    socket: PathBuf,
}

impl Target {
    /// Connects to the server. Ignores errors in the configuration, because the running server may use an earlier
    /// version of it.
    fn connect(&self) -> Result<Connected, Failure> {
        if let Some(socket) = &self.socket {
            return connect(vec![socket.clone()]);
        }
        let file = self.config.clone().or_else(search::find);
        let config = match &file {
            Some(file) => {
                rocknet_config::load_despite_errors(file, &ServerEnvironment::new()).map_err(Failure::Configuration)?
            }
            None => Config::default(),
        };
        let mut connected = connect(control::sockets(&config)?)?;
        // Another server may use the same state folder. A command such as `rocknet stop` must reach only the server
        // whose configuration was named or found.
        if let Some(file) = file {
            let meant = search::absolute(&file);
            let status: Status = connected.call(&Request::Status)?;
            if let Some(served) = status.config_file.filter(|served| *served != meant) {
                return Err(Failure::Failed(format!(
                    "the server at {} serves {}, not {}: name its configuration with -c, or another socket with --socket",
                    connected.socket.display(),
                    served.display(),
                    meant.display()
                )));
            }
        }
        Ok(connected)
    }

    /// Connects to the server, sends a request, and returns the reply.
    pub fn call<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Failure> {
        self.connect()?.call(request)
    }

    /// Sends a request. The inner `Err` is an error reply of the server, which the caller prints.
    pub fn try_call<T: DeserializeOwned>(&self, request: &Request) -> Result<Result<T, ApiError>, Failure> {
        match self.connect()?.client.call(request) {
            Ok(reply) => Ok(Ok(reply)),
            Err(ClientError::Api(error)) => Ok(Err(error)),
            Err(error) => Err(Failure::Failed(error.to_string())),
        }
    }
}

impl Target {
    /// Connects to the server, for several requests.
    pub fn client(&self) -> Result<Client, Failure> {
        Ok(self.connect()?.client)
    }

    /// Sends a request whose reply is a stream of events. `take` is called with each event; its error ends the stream.
    pub fn stream<T: DeserializeOwned>(
        &self,
        request: &Request,
        take: impl FnMut(T) -> Result<(), ClientError>,
    ) -> Result<(), Failure> {
        let streamed = self.connect()?.client.stream(request, take);
        streamed.map_err(|error| Failure::Failed(error.to_string()))
    }
}

/// Connects to the first of these sockets at which a server listens. Returns the error of the first socket if no server
/// listens at any of them.
fn connect(sockets: Vec<PathBuf>) -> Result<Connected, Failure> {
    let mut first_error = None;
    for socket in sockets {
        match Client::connect(&socket) {
            Ok(client) => return Ok(Connected { client, socket }),
            Err(error) => drop(first_error.get_or_insert(error)),
        }
    }
    let text = first_error.map(|error| error.to_string());
    Err(Failure::Failed(text.unwrap_or_default()))
}

impl Connected {
    fn call<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, Failure> {
        self.client.call(request).map_err(|error| {
            if let ClientError::Api(ApiError {
                details: Some(details), ..
            }) = &error
            {
                print_details(details);
            }
            Failure::Failed(error.to_string())
        })
    }
}

/// Waits until nothing listens at the socket any more. Returns false after [`STOP_TIMEOUT`].
fn wait_for_end(socket: &Path) -> bool {
    let deadline = Instant::now() + STOP_TIMEOUT;
    while Instant::now() < deadline {
        if let Err(ClientError::NotRunning(_)) = Client::connect(socket) {
            return true;
        }
        thread::sleep(STOP_POLL_INTERVAL);
    }
    false
}

/// Maximum time that `rocknet stop` waits for the server to end. The server completes the responses in progress first,
/// for up to `limits.shutdown`, 10 s by default. Programs and threads of the server end within the minute after it.
const STOP_TIMEOUT: Duration = Duration::from_secs(MAX_SHUTDOWN.as_secs() + 60);

/// Interval at which `rocknet stop` checks whether the server has ended, too short to be noticed.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

pub fn status(options: &StatusOptions) -> Result<(), Failure> {
    let status: Status = options.target.call(&Request::Status)?;
    if options.json {
        return print_json(&status);
    }
    print(status);
    Ok(())
}

pub fn sites(options: &SitesOptions) -> Result<(), Failure> {
    if let Some(name) = &options.name {
        let request = Request::Site(SiteName { name: name.clone() });
        let site: SiteDetail = options.target.call(&request)?;
        if options.json {
            return print_json(&site);
        }
        print(site);
        return Ok(());
    }
    let sites: Vec<SiteSummary> = options.target.call(&Request::Sites)?;
    if options.json {
        return print_json(&sites);
    }
    print(SiteList(&sites));
    Ok(())
}

pub fn reload(options: &ReloadOptions) -> Result<(), Failure> {
    print_done(&options.target.call(&Request::Reload)?, options.json)
}

pub fn stop(options: &StopOptions) -> Result<(), Failure> {
    let mut connected = options.target.connect()?;
    let Done { message, .. } = connected.call(&Request::Stop)?;
    if !options.json {
        print(format_args!("{message}\n"));
    }
    // Closes this connection, because the stopping server would otherwise have to close it.
    let Connected { socket, client } = connected;
    drop(client);
    if wait_for_end(&socket) {
        return print_done(&Done::new("stopped"), options.json);
    }
    Err(Failure::Failed(format!(
        "the server has not stopped within {} s",
        STOP_TIMEOUT.as_secs()
    )))
}

pub fn log_level(options: &LogLevelOptions) -> Result<(), Failure> {
    let module = options.module.clone();
    let request = match options.level {
        None => Request::LogLevel,
        Some(NewLevel::Level(level)) => Request::SetLogLevel(LogLevelChange {
            level: Some(level),
            module,
        }),
        Some(NewLevel::Default) if module.is_some() => Request::SetLogLevel(LogLevelChange { level: None, module }),
        Some(NewLevel::Default) => {
            let message = "`default` needs --module: `rocknet reload` restores the level of all modules";
            return Err(Failure::Usage(message.to_owned()));
        }
    };
    let levels: LogLevel = options.target.call(&request)?;
    if options.json {
        return print_json(&levels);
    }
    print(levels);
    Ok(())
}

pub fn certs(options: &CertsOptions) -> Result<(), Failure> {
    let certificates: Vec<CertificateSummary> = options.target.call(&Request::Certificates)?;
    if options.json {
        return print_json(&certificates);
    }
    print(CertificateList(&certificates));
    Ok(())
}

pub fn upstreams(options: &UpstreamsOptions) -> Result<(), Failure> {
    let named = |address: &String| UpstreamAddress {
        address: address.clone(),
    };
    let drain = options
        .drain
        .as_ref()
        .map(|address| Request::DrainUpstream(named(address)));
    let enable = options
        .enable
        .as_ref()
        .map(|address| Request::EnableUpstream(named(address)));
    if let Some(request) = drain.or(enable) {
        return print_done(&options.target.call(&request)?, options.json);
    }
    let upstreams: Vec<UpstreamSummary> = options.target.call(&Request::Upstreams)?;
    if options.json {
        return print_json(&upstreams);
    }
    print(UpstreamList(&upstreams));
    Ok(())
}

pub fn purge(options: &PurgeOptions) -> Result<(), Failure> {
    let purge = ResponsePurge {
        url: options.url.clone(),
        prefix: options.prefix.clone(),
        tag: options.tag.clone(),
        site: options.site.clone(),
    };
    let request = match options.responses || purge != ResponsePurge::default() {
        true => Request::PurgeResponses(purge),
        false => Request::PurgeFileCache,
    };
    print_done(&options.target.call(&request)?, options.json)
}

/// Prints the message of a server's reply, and the warnings of the reply on standard error.
pub fn print_done(done: &Done, json: bool) -> Result<(), Failure> {
    if json {
        return print_json(done);
    }
    print(format_args!("{}\n", done.message));
    done.findings.iter().for_each(print_warning);
    Ok(())
}

/// Prints a value as JSON.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Failed(error.to_string()))?;
    print(format_args!("{text}\n"));
    Ok(())
}
