//! Commands that query or instruct a running server through its control socket.

use std::path::PathBuf;

use rocknet::certificates::{ServerEnvironment, state_folder};
use rocknet_config::Config;
use rocknet_control::api::{ApiError, Done, Level, LogLevel, Request};
use rocknet_control::{Client, ClientError, SiteList, SiteSummary, Status};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Failure, control, print, print_details, search};

/// The server that a command addresses.
#[derive(Debug, clap::Args)]
pub struct Target {
    /// The configuration of the server, which says where its control socket is
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// The control socket; by default the one of the configuration
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
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

/// List the sites of the running server
#[derive(Debug, clap::Args)]
pub struct SitesOptions {
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
}

/// Stop the running server after the responses in progress
#[derive(Debug, clap::Args)]
pub struct StopOptions {
    #[command(flatten)]
    target: Target,
}

/// Show or change the level of the error log of the running server
///
/// The new level applies until the next reload.
#[derive(Debug, clap::Args)]
pub struct LogLevelOptions {
    /// error, warn, info, debug or trace
    #[arg(value_parser = parse_level)]
    level: Option<Level>,
    #[command(flatten)]
    target: Target,
}

fn parse_level(name: &str) -> Result<Level, String> {
    Level::from_name(name).ok_or_else(|| {
        let names = Level::ALL.map(Level::name).join(", ");
        format!("the levels are {names}")
    })
}

impl Target {
    /// Returns the path of the control socket. A configuration with errors is read as far as possible, because the
    /// running server may use an earlier one.
    fn socket(&self) -> Result<PathBuf, Failure> {
        if let Some(socket) = &self.socket {
            return Ok(socket.clone());
        }
        let file = self.config.clone().or_else(search::find);
        let config = match file {
            Some(file) => rocknet_config::load_despite_errors(&file, &ServerEnvironment::new()),
            None => Config::default(),
        };
        control::socket(&config, &state_folder(&config)).ok_or_else(|| {
            Failure::Failed(
                "the control socket is switched off: `admin.socket` or ROCKNET_SOCKET is \"off\"".to_owned(),
            )
        })
    }

    fn call<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Failure> {
        let failed = |error: ClientError| {
            if let ClientError::Api(ApiError {
                details: Some(details), ..
            }) = &error
            {
                print_details(details);
            }
            Failure::Failed(error.to_string())
        };
        let mut client = Client::connect(&self.socket()?).map_err(failed)?;
        client.call(request).map_err(failed)
    }
}

pub fn status(options: &StatusOptions) -> Result<(), Failure> {
    let status: Status = options.target.call(&Request::Status)?;
    if options.json {
        return print_json(&status);
    }
    print(status);
    Ok(())
}

pub fn sites(options: &SitesOptions) -> Result<(), Failure> {
    let sites: Vec<SiteSummary> = options.target.call(&Request::Sites)?;
    if options.json {
        return print_json(&sites);
    }
    print(SiteList(&sites));
    Ok(())
}

pub fn reload(options: &ReloadOptions) -> Result<(), Failure> {
    print_done(&options.target, &Request::Reload)
}

pub fn stop(options: &StopOptions) -> Result<(), Failure> {
    print_done(&options.target, &Request::Stop)
}

pub fn log_level(options: &LogLevelOptions) -> Result<(), Failure> {
    let request = options.level.map_or(Request::LogLevel, Request::SetLogLevel);
    let LogLevel { level } = options.target.call(&request)?;
    print(format_args!("{level}\n"));
    Ok(())
}

fn print_done(target: &Target, request: &Request) -> Result<(), Failure> {
    let Done { message } = target.call(request)?;
    print(format_args!("{message}\n"));
    Ok(())
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Failed(error.to_string()))?;
    print(format_args!("{text}\n"));
    Ok(())
}
