//! A server that runs in the foreground: started, told about, and led by signals and commands to its end.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rocknet::accounts;
use rocknet::certificates::state_folder;
use rocknet::certificates::store::Folder;
use rocknet::log::init_errors;
use rocknet::php;
use rocknet::report::MAX_FOLDERS_TRIED;
use rocknet::server::{Server, StartError};
use rocknet_config::model::LogTarget;
use rocknet_config::{Code, Config, Finding, Report};
use rocknet_control::{Command, SiteSummary};
use rocknet_io::machine;
use rocknet_io::rights::{self, User};
use rocknet_io::terminal::{Stream, is_terminal, shows_colour};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::reload::{self, InForce};
use super::{Exit, Failure, complain, resolved, say, tell_report, trust, warn};
use crate::banner;
use crate::console::{self, Typed};

/// What goes with a configuration that is to be served.
pub struct Plan {
    pub warnings: Vec<Finding>,
    pub origin: Origin,
    /// Paragraphs for whoever reads the start-up block.
    pub notes: Vec<String>,
    /// Commands are taken from standard input, whatever it is.
    pub console: bool,
    /// The browser is shown the first URL.
    pub open: bool,
    /// Where a site listens on all addresses, the start-up block lists the addresses of this machine.
    pub shows_addresses: bool,
}

/// Where the configuration came from, and so where it can be read again.
pub enum Origin {
    File(PathBuf),
    /// `rocknet serve`
    Folder,
    /// The default page.
    Nothing,
}

/// Why nothing runs.
pub enum NotStarted {
    Start(StartError),
    Io(io::Error),
}

/// What the main thread is asked to do.
enum Wish {
    Reload,
    Reopen,
    Stop,
    Typed(Typed),
    /// The server has stopped; whether nobody was cut.
    Stopped(bool),
}

pub struct Running {
    runtime: Runtime,
    wishes: Receiver<Wish>,
    wish: Sender<Wish>,
    server: Server,
    plan: Plan,
    in_force: InForce,
    has_console: bool,
}

pub fn run(config: Config, plan: Plan) -> Result<(), Failure> {
    start(config, plan)?.serve()
}

/// Everything up to the moment from which requests are answered.
pub fn start(config: Config, plan: Plan) -> Result<Running, NotStarted> {
    // Signals are caught before there is anything that one of them could break. Neither this runtime nor its signals
    // start a thread, so rights can still be given up.
    let runtime = Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(NotStarted::Io)?;
    let (wish, wishes) = channel(MAX_WISHES);
    catch_signals(&runtime, &wish).map_err(NotStarted::Io)?;

    let in_force = InForce::new(&config);
    // `rocknet serve` shows a folder of whoever types it, which another account may not be able to read.
    let user = match plan.origin {
        Origin::File(_) => accounts::server_account(&config),
        Origin::Folder | Origin::Nothing => config.server.user.clone(),
    };
    let scripts = accounts::Plan::of(&config);
    let state = State {
        folder: state_folder(&config),
        is_needed: config.sites.iter().any(|site| site.tls.is_some()) || php::is_wanted(&config),
    };
    let mut give_up_rights = || become_user(user.as_deref(), &state, &scripts);
    let server = Server::start(config, Vec::new(), &mut give_up_rights).map_err(NotStarted::Start)?;
    let _ = init_errors(&server.snapshot().config.log, server.logger());
    tracing::debug!("{}", server.backend());
    let has_console = plan.console || is_terminal(Stream::Input);
    Ok(Running {
        runtime,
        wishes,
        wish,
        server,
        plan,
        in_force,
        has_console,
    })
}

impl Running {
    /// Serves until told to stop.
    pub fn serve(self) -> Result<(), Failure> {
        let sites = self.server.sites();
        self.tell_start(&sites);
        if self.plan.open {
            open_browser(&sites);
        }
        if self.has_console
            && let Err(error) = read_commands(self.wish.clone())
        {
            warn(format_args!("commands cannot be typed: {error}"));
        }
        let Running {
            runtime,
            wishes,
            wish,
            server,
            plan,
            in_force,
            has_console,
        } = self;
        let shop = Shop {
            wish,
            origin: plan.origin,
            in_force,
            has_console,
        };
        let registries = Arc::clone(server.registries());
        let served = runtime.block_on(shop.run(server, wishes));
        // After a stop at once as well: what programs have started does not end with this process.
        registries.programs.stop(Instant::now() + PROGRAMS_GRACE);
        served
    }

    fn tell_start(&self, sites: &[SiteSummary]) {
        let mut notes = self.plan.notes.clone();
        if self.plan.shows_addresses {
            notes.extend(banner::other_machines(
                sites,
                &self.server.snapshot().config,
                &machine::addresses(),
            ));
        }
        let file = match &self.plan.origin {
            Origin::File(file) => Some(file.as_path()),
            Origin::Folder | Origin::Nothing => None,
        };
        notes.extend(trust::hint(&self.server.snapshot().config, file));
        say(banner::places(sites, &notes, shows_colour(Stream::Output)));
        // Where the error log is not this terminal, it must not be left without them.
        let to_log = self.server.snapshot().config.log.errors != LogTarget::Stderr;
        for warning in self.warnings() {
            if to_log {
                tracing::warn!("{warning}");
            }
            warn(warning);
        }
        if !self.plan.warnings.is_empty() {
            if to_log {
                reload::log_findings(&self.plan.warnings);
            }
            tell_report(&Report {
                findings: self.plan.warnings.clone(),
                omitted: 0,
            });
        }
        let has_file = matches!(self.plan.origin, Origin::File(_));
        say(banner::way_out(self.has_console, has_file));
    }

    /// What only starting has shown.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let snapshot = self.server.snapshot();
        let from_file = matches!(self.plan.origin, Origin::File(_));
        match (&snapshot.config.server.user, rights::is_root()) {
            (Some(user), _) if self.in_force.user_ignored => {
                warnings.push(format!("`user` is ignored: only root can become {user}"));
            }
            (None, true) if from_file => warnings.push(
                "running as root: `useradd --system rocknet` creates an account that RockNet becomes once its ports are open \
                 (or name one as `user` below [server])"
                    .to_owned(),
            ),
            (None, true) => warnings.push("running as root: a plain user will do for this".to_owned()),
            _ => {}
        }
        if self.in_force.script_user_ignored {
            warnings.push("`script_user` is ignored: only root can run scripts as somebody else".to_owned());
        }
        warnings.extend(accounts::warning(accounts::runs_scripts(&snapshot.config)));
        warnings.extend(php::missing(&snapshot.config));
        warnings.extend(snapshot.spool_trouble());
        let told_by_check = |error: &io::Error| {
            error.kind() == io::ErrorKind::NotFound
                && self.plan.warnings.iter().any(|finding| finding.code == Code::Missing)
        };
        for (site, folder, error) in snapshot.missing_folders(MAX_FOLDERS_TRIED) {
            if !told_by_check(&error) {
                warnings.push(format!(
                    "site {site}: its folder {} cannot be opened: {error}",
                    resolved(folder).display()
                ));
            }
        }
        warnings
    }
}

/// The main thread while the server runs.
struct Shop {
    wish: Sender<Wish>,
    origin: Origin,
    in_force: InForce,
    has_console: bool,
}

impl Shop {
    async fn run(self, server: Server, mut wishes: Receiver<Wish>) -> Result<(), Failure> {
        let mut server = Some(server);
        while let Some(wish) = wishes.recv().await {
            match (wish, &server) {
                (Wish::Stopped(clean), _) => {
                    if !clean {
                        warn("some connections did not finish in time and were cut");
                    }
                    return Ok(());
                }
                (Wish::Stop | Wish::Typed(Typed::Command(Command::Quit)), Some(_)) => {
                    if let Some(server) = server.take() {
                        self.stop(server);
                    }
                }
                (Wish::Stop | Wish::Typed(Typed::Command(Command::Quit)), None) => {
                    complain("stopped at once: what was being answered is cut");
                    return Err(Failure::Told(Exit::Failed));
                }
                (Wish::Reload, Some(_)) if self.terminal_has_gone() => {
                    // What a closed window sends is SIGHUP too.
                    if let Some(server) = server.take() {
                        self.stop(server);
                    }
                }
                (Wish::Reload, Some(server)) => {
                    let _ = reload::reload(server, &self.origin, &self.in_force);
                }
                (Wish::Reopen, Some(server)) => {
                    server.logger().reopen();
                    tracing::info!("log files are opened anew");
                }
                (Wish::Typed(Typed::Command(Command::Reload)), Some(server)) => {
                    if let Some(done) = reload::reload(server, &self.origin, &self.in_force) {
                        say(format_args!("{done}\n"));
                    }
                }
                (Wish::Typed(Typed::Command(command)), Some(server)) => say(console::answer(command, server)),
                (Wish::Typed(Typed::Unknown(unknown)), _) => say(format_args!("{unknown}\n")),
                // Too late for anything else.
                (_, None) => {}
            }
        }
        Ok(())
    }

    /// Stops on a thread of its own, so that a second wish to stop is heard.
    fn stop(&self, server: Server) {
        tracing::info!("stopping");
        if self.has_console {
            say("Stopping when the answers under way are out; Ctrl+C stops at once.\n");
        }
        let wish = self.wish.clone();
        let stop = move || {
            let clean = server.stop();
            // The main thread waits for this, and for nothing else.
            let _ = wish.blocking_send(Wish::Stopped(clean));
        };
        if let Err(error) = thread::Builder::new().name("rn-stop".to_owned()).spawn(stop) {
            // The server went with the closure: its threads end with the process.
            complain(format_args!("stopped at once: {error}"));
            let _ = self.wish.try_send(Wish::Stopped(false));
        }
    }

    fn terminal_has_gone(&self) -> bool {
        self.in_force.at_terminal && !is_terminal(Stream::Input)
    }
}

/// The state folder, which belongs to the account that the server becomes.
struct State {
    folder: PathBuf,
    /// The configuration keeps certificates or PHP there. Without it a reload may, later.
    is_needed: bool,
}

fn become_user(user: Option<&str>, state: &State, scripts: &accounts::Plan) -> Result<(), String> {
    let Some(user) = user.filter(|_| rights::is_root()) else {
        return Ok(());
    };
    let user = User::find(user).map_err(|error| error.to_string())?;
    let handed = Folder::new(&state.folder).hand_over(user.uid, user.gid);
    if let Err(error) = handed
        && state.is_needed
    {
        return Err(format!("the state folder {}: {error}", state.folder.display()));
    }
    // Also a helper that waits for scripts needs root's rights to begin with.
    accounts::prepare(scripts, &user).map_err(|error| format!("scripts cannot run: {error}"))?;
    rights::drop_to(&user).map_err(|error| error.to_string())
}

fn catch_signals(runtime: &Runtime, wishes: &Sender<Wish>) -> io::Result<()> {
    let _inside = runtime.enter();
    let table: [(SignalKind, fn() -> Wish); 4] = [
        (SignalKind::terminate(), || Wish::Stop),
        (SignalKind::interrupt(), || Wish::Stop),
        (SignalKind::hangup(), || Wish::Reload),
        (SignalKind::user_defined1(), || Wish::Reopen),
    ];
    for (kind, wish) in table {
        let (mut signals, wishes) = (signal(kind)?, wishes.clone());
        runtime.spawn(async move {
            while signals.recv().await.is_some() {
                if wishes.send(wish()).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}

/// A thread waits for the keyboard: it is left behind when the program ends, and its end does not end the program.
fn read_commands(wishes: Sender<Wish>) -> io::Result<()> {
    let read = move || {
        console::read(console::Keyboard, |typed| {
            wishes.blocking_send(Wish::Typed(typed)).is_ok()
        });
    };
    thread::Builder::new()
        .name("rn-console".to_owned())
        .stack_size(CONSOLE_STACK)
        .spawn(read)
        .map(drop)
}

fn open_browser(sites: &[SiteSummary]) {
    let Some(url) = sites
        .iter()
        .flat_map(|site| &site.urls)
        .find(|url| url.starts_with("http"))
    else {
        return warn("a browser cannot open a Unix socket");
    };
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = std::process::Command::new(program);
    match command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
    {
        // Waited for, so that it leaves no zombie behind.
        Ok(mut child) => drop(thread::Builder::new().spawn(move || child.wait())),
        Err(error) => warn(format_args!("the browser cannot be opened: {program}: {error}")),
    }
}

impl From<NotStarted> for Failure {
    fn from(error: NotStarted) -> Failure {
        Failure::Failed(match error {
            NotStarted::Start(error) => format!("cannot start: {error}"),
            NotStarted::Io(error) => format!("cannot start: {error}"),
        })
    }
}

/// For the processes of CGI programs to end once they are killed.
const PROGRAMS_GRACE: Duration = Duration::from_secs(5);

/// Wishes that may wait while one is granted; whoever sends more waits.
const MAX_WISHES: usize = 16;

/// It splits lines and compares words.
const CONSOLE_STACK: usize = 128 * 1024;
