//! Jobs for the worker thread, and its reports.

mod bans;
mod ending;
mod file_config;
mod folders;
mod services;
mod trouble;

use std::path::PathBuf;
use std::time::Duration;

use rocknet_control::api::{ApiError, Level, Permission};
use rocknet_control::config::{Candidate, Change, Checked, ConfigState, ConfigText, Edits, Replacement, Saved, Undo};
use rocknet_control::doctor::DoctorCheck;
use rocknet_control::logs::LogEvent;
use rocknet_control::route::RouteTraffic;
use rocknet_control::site_form::SiteForm;
use rocknet_control::{CertificateSummary, SiteSummary, Status};

use crate::elsewhere::Elsewhere;
use crate::theme::ColorScheme;
use crate::ways::{Starter, Ways};

pub use bans::{BanReport, MAX_BANS};
pub use ending::{Ending, EndingCause};
pub use file_config::{FileConfig, FileFinding, FileSite};
pub use folders::{FolderTrouble, Listing};
pub use services::{
    Database, DatabaseKind, DatabaseReport, DatabaseState, PhpReport, ResponseTimes, ServiceJob, SiteUse, Trust,
    TrustStore, UnitAction, UpstreamReport,
};
pub use trouble::Trouble;

/// Purpose of a change of the configuration. The window shows it when the change is in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    Add(String),
    Remove(String),
    Enable(String),
    Disable(String),
    /// Copies a website: the name of the copy, then the original.
    Duplicate(String, String),
    Undo,
    /// Changes the website that has this name afterwards, or the server if it is empty.
    Change(String),
    /// Replaces the text of a file with this name.
    Text(String),
}

/// List that a page shows, and that is queried when the page is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Query {
    Certificates,
    /// Servers that requests are forwarded to.
    Upstreams,
    /// Bans, and the clients with the most offences.
    Bans,
    Php,
    /// The same as `Php`, without the versions that are missing, which take long to find.
    PhpPools,
    /// Use of PHP and of other servers by websites.
    Uses,
    /// Trust stores of this account.
    Trust,
    /// Databases of this computer.
    Databases,
    Doctor,
    History,
    Level,
}

/// Job for the worker thread.
#[derive(Debug, Clone, PartialEq)]
pub enum Job {
    /// Looks for the server at once, without waiting for the next second.
    Connect,
    /// Connects to another server from now on, and saves its place.
    UseServer(Elsewhere),
    /// Starts a server, and connects to it.
    Start(Starter),
    /// Replaces the first port by the second in the configuration, and starts the server as a program.
    StartAt(u16, u16),
    Stop,
    /// Stops the server, and starts it again.
    Restart,
    Reload,
    /// Lets a new process take over from the server.
    Upgrade,
    Edit(Purpose, Edits),
    TakeBack(Undo),
    /// Checks edits. The number is returned with the result, which is out of date if another check was sent meanwhile.
    Check(u64, Edits),
    /// Queries the form of a website, or of the server if the name is empty.
    SiteForm(String),
    /// Reads a file of the configuration; `None`: the main file.
    ReadText(Option<PathBuf>),
    /// Checks a text of the configuration. The number is returned with the result, as for edits.
    CheckText(u64, Candidate),
    /// Replaces the text of a file of the configuration.
    Replace(Purpose, Replacement),
    Query(Query),
    /// Repeats a query every two seconds; `None` ends the repetition.
    Watch(Option<Query>),
    Service(ServiceJob),
    SetLevel(Level),
    /// Queries the counters of routes each second, or stops doing so.
    WatchTraffic(bool),
    /// Follows the logs from now on.
    FollowLogs,
    /// Ends following the logs.
    UnfollowLogs,
    /// Looks for ways to start and stop a server.
    FindWays,
    /// Queries whether the desktop prefers dark or light windows.
    QueryDesktop,
    /// Finds out what kind of website a folder contains.
    Inspect(PathBuf),
    /// Lists the folders in a folder; an empty path means the home folder.
    ListFolder(PathBuf),
    CreateFolder(PathBuf),
    /// Looks for development servers.
    FindServers,
    /// Requests the start page of the website with this name, and looks the name up on this machine.
    Visit(String),
    CreateStartPage(PathBuf),
    /// Installs the certificate of the local CA in the stores of browsers.
    Trust,
    /// Opens a URL, a folder or a file with the program that the desktop has for it.
    Open(String),
    /// Opens a folder in the editor of the user.
    OpenEditor(PathBuf),
    /// Writes the file of settings.
    SaveSettings(String),
}

impl Job {
    /// Returns true for a job about folders, names and trust stores of this computer, which has no meaning for a server
    /// elsewhere.
    pub fn is_of_this_computer(&self) -> bool {
        matches!(
            self,
            Job::Inspect(_)
                | Job::ListFolder(_)
                | Job::CreateFolder(_)
                | Job::FindServers
                | Job::Visit(_)
                | Job::CreateStartPage(_)
                | Job::Trust
                | Job::OpenEditor(_)
        )
    }
}

/// Reason why there is no connection to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// No server is running. `true`: there is a configuration file.
    Stopped(bool),
    /// The socket is not accessible to this account.
    NoAccess(PathBuf),
    /// Nothing listens at the socket or address of a server elsewhere.
    Unreachable(String),
    /// The server at this address does not accept the token. It is not sent again until the user connects again,
    /// because the server counts wrong tokens.
    WrongToken(String),
    /// Another account of this computer listens at the socket or address of a server elsewhere. Nothing was sent to it.
    Foreign(String),
    /// The server at this socket or address accepts connections, but does not reply in time.
    NoReply(PathBuf),
    /// The server does not reply as it should.
    Failed(String),
}

/// Failed start of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StartFailure {
    pub reason: Trouble,
    /// Last lines of its output.
    pub lines: Vec<String>,
    /// Port that another program holds, and a free port that the configuration can use in its place.
    pub port: Option<(u16, u16)>,
}

/// Contents of a folder that identify the kind of a website.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inspection {
    pub exists: bool,
    /// True if the folder was not looked into, because earlier ones do not reply.
    pub is_slow: bool,
    /// True if an error of this program has ended the look into the folder.
    pub has_crashed: bool,
    /// True for a file in place of a folder.
    pub is_file: bool,
    pub readable: bool,
    pub has_index_html: bool,
    pub has_php: bool,
    pub is_wordpress: bool,
    pub is_laravel: bool,
}

/// Result of a visit to a website.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// Name of the website.
    pub site: String,
    pub url: String,
    /// Status of the response, or the error.
    pub reply: Result<u16, Trouble>,
    /// Result of the lookup of the name on this machine.
    pub name_resolves: bool,
}

/// State of a server at a moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Poll {
    /// Time since the start of the program.
    pub at: Duration,
    pub status: Status,
    /// The websites, if they were queried this time.
    pub sites: Option<Vec<SiteSummary>>,
    /// Message of the server if it has refused to list the websites.
    pub sites_error: Option<String>,
    /// Counters of routes, if they are watched.
    pub traffic: Option<Vec<RouteTraffic>>,
    /// Message of the server if it has refused to count the requests of routes.
    pub traffic_error: Option<String>,
    /// Files of the configuration, compared with what the server has loaded; `None` if it is not known.
    pub config: Option<ConfigState>,
}

/// Report of the worker thread.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// Place of the server, as it was saved.
    Place(Elsewhere),
    /// A server was found at this control socket, or at this address.
    Connected(PathBuf),
    /// Permission of the connection.
    Permission(Permission),
    Absent(Absence),
    /// The server has ended, and was not stopped by this program. Its absence is reported next.
    Ended(Ending),
    /// Configuration of a server that is stopped, once it has changed.
    FileConfig(Box<FileConfig>),
    /// A server is being started.
    Starting,
    StartFailed(StartFailure),
    /// The system has refused to start, stop or restart a unit. The text is a command that does so with root's rights.
    Refused(String),
    /// Ways to start and stop a server, if they have changed.
    Ways(Ways),
    /// Colour scheme that the desktop prefers; `None` if it has no preference.
    Desktop(Option<ColorScheme>),
    /// The server was started. If another program held a port of the first page: this port, the name of the other
    /// program (empty if it is not known), and the port that is used instead.
    Started(Option<(u16, String, u16)>),
    /// The server was started for the first time, so its first page is shown in the browser.
    FirstStart,
    /// The server was stopped, but still completes requests of this number of connections. It stops at once if it is
    /// stopped again.
    StillStopping(u64),
    Polled(Box<Poll>),
    /// A new process of this version has taken over; or the reason why the old one goes on.
    Upgraded(Result<String, Trouble>),
    /// The website with this name was not added, because another program holds the first port. The second one is free.
    PortTaken(String, u16, u16),
    Edited(Purpose, Result<Saved, ApiError>),
    Checked(u64, Result<Checked, ApiError>),
    /// The form of the website with this name.
    SiteForm(String, Result<Box<SiteForm>, ApiError>),
    /// The text of the file that was queried.
    ConfigText(Option<PathBuf>, Result<Box<ConfigText>, ApiError>),
    Certificates(Result<Vec<CertificateSummary>, String>),
    Upstreams(Result<UpstreamReport, String>),
    Bans(Result<BanReport, String>),
    Php(Result<PhpReport, String>),
    Uses(Result<Vec<SiteUse>, String>),
    Trust(Result<Vec<TrustStore>, Trouble>),
    Databases(DatabaseReport),
    /// The token of this program does not permit the query.
    Denied(Query),
    /// An instruction about a service was carried out, with the message of the server, or has failed.
    Served(ServiceJob, Result<String, Trouble>),
    Doctor(Result<Vec<DoctorCheck>, String>),
    History(Result<Vec<Change>, String>),
    Level(Level),
    /// The user has changed the level.
    LevelChanged(Level),
    Log(Vec<LogEvent>),
    /// The server refuses to send its logs. `None`: the token of this program does not permit it.
    LogsRefused(Option<String>),
    /// The logs are followed again after their stream was cut. The recent lines arrive again.
    LogsResumed,
    Inspected(PathBuf, Inspection),
    /// The folders in the folder with this path, as it was sent.
    Listed(PathBuf, Result<Listing, FolderTrouble>),
    FolderCreated(PathBuf, Result<(), FolderTrouble>),
    /// Addresses of development servers.
    FoundServers(Vec<String>),
    Visited(Visit),
    /// An instruction was carried out, with its message.
    Done(String),
    /// Browsers trust the local CA now.
    Trusted,
    /// The token of this program does not permit the instruction.
    NotPermitted,
    /// An instruction has failed, with its message.
    Failed(Trouble),
}
