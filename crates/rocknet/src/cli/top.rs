//! `rocknet top`: shows the load of the running server, its sites and its routes, by default once a second.

mod sample;
mod view;

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use rocknet_control::api::Request;
use rocknet_control::{Client, ClientError, UpstreamSummary};
use serde::de::DeserializeOwned;

use super::Failure;
use super::output::try_print;
use super::remote::Target;
use sample::{Sample, SampleHistory, TimedStatus};

/// Show the load of the running server, updated every second
///
/// Requests per second, response times, CPU, memory, connections, the busiest sites and routes, the
/// clients with the most refused and failed requests, and the upstreams. `q`
/// or Esc ends it.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Seconds between two updates
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// End after this number of updates
    #[arg(long)]
    count: Option<u64>,
    #[command(flatten)]
    target: Target,
    /// Print a JSON object for each update
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let mut client = Reconnecting {
        target: &options.target,
        client: options.target.client()?,
    };
    if options.json {
        return print_samples(options, &mut client);
    }
    if !io::stdout().is_terminal() {
        return Err(Failure::Failed("`rocknet top` needs a terminal: use --json".to_owned()));
    }
    let mut terminal = ratatui::init();
    let shown = show(options, &mut client, &mut terminal);
    ratatui::restore();
    shown
}

/// Prints a JSON object for each interval until the count is reached or the reader of the output closes its pipe.
fn print_samples(options: &Options, client: &mut Reconnecting<'_>) -> Result<(), Failure> {
    let mut before = query(client)?;
    let mut left = options.count;
    while left != Some(0) {
        std::thread::sleep(Duration::from_secs(options.interval));
        let now = query(client)?;
        let sample = Sample::between(&before, &now);
        let json = serde_json::to_string(&sample).map_err(|error| Failure::Failed(error.to_string()))?;
        match try_print(format_args!("{json}\n")) {
            // The reader of the output has closed its pipe (`rocknet top --json | head`).
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            printed => printed.map_err(|error| Failure::Failed(format!("cannot write the output: {error}")))?,
        }
        before = now;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// Updates the terminal until a key or the count ends the command.
fn show(options: &Options, client: &mut Reconnecting<'_>, terminal: &mut DefaultTerminal) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Failed(format!("the terminal cannot be used: {error}"));
    let interval = Duration::from_secs(options.interval);
    let mut history = SampleHistory::default();
    let mut before = query(client)?;
    // The first drawing has no interval before it, and does not count.
    let (mut updates, mut is_due) = (0, false);
    loop {
        let now = query(client)?;
        let upstreams: Vec<UpstreamSummary> = client.call(&Request::Upstreams)?;
        history.push(Sample::between(&before, &now));
        terminal
            .draw(|frame| view::draw(frame, &now.status, &history, &upstreams))
            .map_err(failed)?;
        before = now;
        updates += u64::from(is_due);
        if options.count.is_some_and(|count| updates >= count) {
            return Ok(());
        }
        // Handles keys until the next update is due. A new size of the terminal causes a drawing at once.
        is_due = true;
        let deadline = Instant::now() + interval;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            if !event::poll(left).map_err(failed)? {
                break;
            }
            match event::read().map_err(failed)? {
                Event::Key(key) if ends(key) => return Ok(()),
                Event::Resize(..) => {
                    is_due = false;
                    break;
                }
                _ => {}
            }
        }
    }
}

/// Returns true for a key that ends the command.
fn ends(key: KeyEvent) -> bool {
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}

/// Queries the state of the server, and records the time.
fn query(client: &mut Reconnecting<'_>) -> Result<TimedStatus, Failure> {
    let status = client.call(&Request::Status)?;
    let at = Instant::now();
    let routes = client.call(&Request::Routes)?;
    // A server of an earlier version does not know the request.
    let offenders = client.call(&Request::Offenders).unwrap_or_default();
    Ok(TimedStatus {
        status,
        routes,
        offenders,
        at,
    })
}

/// Client that connects again if the server has closed the connection, which it does after a while without requests
/// and after a restart.
struct Reconnecting<'t> {
    target: &'t Target,
    client: Client,
}

impl Reconnecting<'_> {
    /// Sends a request, which must change nothing, because it may be sent twice.
    fn call<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, Failure> {
        let result = match self.client.call(request) {
            Err(ClientError::Io(_)) => {
                self.client = self.target.client()?;
                self.client.call(request)
            }
            result => result,
        };
        result.map_err(|error| Failure::Failed(error.to_string()))
    }
}
