//! `rocknet-gui`: the desktop program of RockNet.

#![forbid(unsafe_code)]

mod view;

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use fltk::app;
use fltk::prelude::*;
use rocknet_gui::job::{Job, Report};
use rocknet_gui::mailbox::Mailbox;
use rocknet_gui::model::{Effect, Model, Settings};
use rocknet_gui::theme::ThemeChoice;
use rocknet_gui::words::Language;
use rocknet_gui::worker::{self, Options};
use view::window::Window;

/// Interval at which notices are checked for their end, and reports are handled while a menu is open.
const TICK: f64 = 1.0;

/// Maximum time that the first window waits for the colour scheme of the desktop. A later reply changes the colours.
const DESKTOP_TIMEOUT: Duration = Duration::from_millis(100);

const USAGE: &str = "\
The desktop program of RockNet

Usage: rocknet-gui [OPTIONS]

Options:
  --socket PATH   The control socket of a server on this computer; by default that of the configuration, or of the
                  system. A socket that SSH forwards is named in the settings
  --config FILE   The configuration of a server that this program starts; by default rocknet/rocknet.toml in
                  $XDG_CONFIG_HOME or ~/.config
  --program PATH  The program `rocknet`; by default the one beside this program, or on the search path
  --help          Print this help
  --version       Print the version
";

fn main() -> ExitCode {
    let mut options = match options(std::env::args_os().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let settings = settings();
    options.language = settings.language;
    let began = Instant::now();
    let app = app::App::default();
    app::set_visible_focus(true);
    let reports = Arc::<Mailbox>::default();
    let sent = Arc::clone(&reports);
    let jobs = worker::start(options, move |report| {
        sent.push(report);
        app::awake();
    });
    let program = Program {
        model: Model::new(settings),
        window: None,
        jobs,
        reports,
        began,
        is_active: true,
        has_ended: false,
    };
    run(program, app);
    ExitCode::SUCCESS
}

/// Runs the window until it is closed.
fn run(mut program: Program, app: app::App) {
    program.open();
    let program = Rc::new(RefCell::new(program));
    let ticking = Rc::clone(&program);
    app::add_timeout3(TICK, move |handle| {
        // An open menu has a loop of its own, in which the one below does not run.
        if app::grab().is_some()
            && let Ok(mut program) = ticking.try_borrow_mut()
        {
            program.step_beside_menu();
        }
        app::repeat_timeout3(TICK, handle);
    });
    while app.wait() {
        if !program.borrow_mut().step() {
            break;
        }
    }
    app.quit();
}

/// Parses the command line. Returns `None` after it has printed the help or the version.
fn options(mut arguments: impl Iterator<Item = OsString>) -> Result<Option<Options>, String> {
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        let mut path = || {
            arguments
                .next()
                .map(PathBuf::from)
                .ok_or(format!("{} needs a path", argument.display()))
        };
        match argument.to_str().unwrap_or_default() {
            "--socket" => options.socket = Some(path()?),
            "--config" => options.config = Some(std::path::absolute(path()?).map_err(|error| error.to_string())?),
            "--program" => options.program = Some(path()?),
            "--help" => {
                print!("{USAGE}");
                return Ok(None);
            }
            "--version" => {
                println!("rocknet-gui {}", env!("CARGO_PKG_VERSION"));
                return Ok(None);
            }
            _ => return Err(format!("unknown option `{}`", argument.display())),
        }
    }
    Ok(Some(options))
}

/// Reads the settings of the user. A setting that the file lacks has its default; the default language is the
/// language of the locale.
fn settings() -> Settings {
    let locale = ["LC_ALL", "LC_MESSAGES", "LANG"]
        .into_iter()
        .filter_map(std::env::var_os)
        .find(|value| !value.is_empty())
        .unwrap_or_default();
    let defaults = Settings {
        language: Language::of_locale(&locale.to_string_lossy()),
        ..Settings::default()
    };
    let file = rocknet_gui::home::settings_folder().map(|folder| folder.join("window.toml"));
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    Settings::parse(&text.unwrap_or_default(), defaults)
}

struct Program {
    model: Model,
    window: Option<Window>,
    jobs: Sender<Job>,
    reports: Arc<Mailbox>,
    began: Instant,
    /// True if a widget of this program has the keyboard focus.
    is_active: bool,
    /// True if a report has ended the program while a menu was open, such as a save before the window is closed.
    has_ended: bool,
}

impl Program {
    /// Opens the window.
    fn open(&mut self) {
        self.wait_for_desktop();
        let mut window = Window::new(self.model.theme());
        window.show(&self.model);
        window.window.show();
        self.window = Some(window);
    }

    /// Waits for the colour scheme of the desktop, so that the window does not change its colours after it has
    /// appeared.
    fn wait_for_desktop(&mut self) {
        if self.model.settings.theme != ThemeChoice::Desktop {
            return;
        }
        let deadline = self.began + DESKTOP_TIMEOUT;
        while let Some(report) = self
            .reports
            .take_within(deadline.saturating_duration_since(Instant::now()))
        {
            let is_awaited = matches!(report, Report::Desktop(_));
            let effects = self.model.report(report);
            // A report quits only after an act of the user, so the result is of no interest here.
            self.carry_out(effects);
            if is_awaited {
                break;
            }
        }
    }

    /// Queries the colour scheme of the desktop when the user returns to the window, because it may have changed.
    fn notice_return(&mut self) {
        let is_active = app::focus().is_some();
        if is_active && !self.is_active {
            drop(self.jobs.send(Job::QueryDesktop));
        }
        self.is_active = is_active;
    }

    /// Handles the acts of the user and the reports that have arrived. Returns false to quit.
    fn step(&mut self) -> bool {
        self.notice_return();
        // Notices need no finer time than seconds.
        let now = Duration::from_secs(self.began.elapsed().as_secs());
        self.model.tick(now);
        while let Some(act) = self.window.as_ref().and_then(Window::next_act) {
            let effects = self.model.act(act);
            if !self.carry_out(effects) {
                return false;
            }
        }
        if self.has_ended || !self.take_reports() {
            return false;
        }
        if let Some(window) = &mut self.window {
            window.show(&self.model);
        }
        true
    }

    /// Handles the reports that have arrived, while a menu is open. Only the parts of the window that cannot own the
    /// menu are updated. Acts of the user wait until the menu is closed.
    fn step_beside_menu(&mut self) {
        self.model.tick(Duration::from_secs(self.began.elapsed().as_secs()));
        self.has_ended |= !self.take_reports();
        if let Some(window) = &mut self.window {
            window.show_beside_menu(&self.model);
        }
    }

    /// Handles the reports that have arrived. Returns false to quit.
    fn take_reports(&mut self) -> bool {
        while let Some(report) = self.reports.take() {
            let effects = self.model.report(report);
            if !self.carry_out(effects) {
                return false;
            }
        }
        true
    }

    /// Carries out the effects of an act or a report. Returns false to quit.
    fn carry_out(&mut self, effects: Vec<Effect>) -> bool {
        for effect in effects {
            match effect {
                // The worker ends only with this program.
                Effect::Job(job) => drop(self.jobs.send(job)),
                // For Ctrl+V, and for the middle button of the mouse.
                Effect::Copy(text) => {
                    app::copy(&text);
                    app::copy2(&text);
                }
                Effect::FocusFilter => {
                    if let Some(window) = &mut self.window {
                        window.focus_filter();
                    }
                }
                Effect::Quit => return false,
            }
        }
        true
    }
}
