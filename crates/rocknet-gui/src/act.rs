//! Acts of the user, caused by a button, a key or a row.

use rocknet_control::api::Level;

use crate::ways::Starter;

/// Page of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageName {
    #[default]
    Websites,
    /// Form that adds a website.
    AddWebsite,
    /// Form that edits a website.
    EditWebsite,
    /// Text of the configuration.
    EditText,
    Activity,
    Logs,
    Server,
    /// Servers that requests are forwarded to.
    Upstreams,
    /// Banned clients, the clients with the most offences, and stored responses.
    Traffic,
    /// Form that bans a client or network.
    AddBan,
    /// Form that drops stored responses.
    DropResponses,
    Php,
    Databases,
    Certificates,
    CheckUp,
    History,
    Settings,
}

impl PageName {
    /// Pages in the order of the navigation.
    pub const NAVIGATION: [PageName; 12] = [
        PageName::Websites,
        PageName::Activity,
        PageName::Logs,
        PageName::Server,
        PageName::Upstreams,
        PageName::Traffic,
        PageName::Php,
        PageName::Databases,
        PageName::Certificates,
        PageName::CheckUp,
        PageName::History,
        PageName::Settings,
    ];

    /// Returns the page that the navigation marks.
    pub fn entry(self) -> PageName {
        match self {
            PageName::AddWebsite | PageName::EditWebsite => PageName::Websites,
            PageName::EditText => PageName::Server,
            PageName::AddBan | PageName::DropResponses => PageName::Traffic,
            page => page,
        }
    }
}

/// Identifies an input of a form or of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldId {
    Folder,
    Kind,
    Name,
    Address,
    /// Encryption of the new website.
    Https,
    Theme,
    Language,
    /// Place of the server, followed by the fields of a server on another computer.
    ServerPlace,
    ServerSocket,
    ServerAddress,
    ServerToken,
    /// Name of the website that is edited.
    SiteName,
    /// Source of the responses of the website that is edited.
    SiteKind,
    /// Field of the website that is edited: the number in its form.
    Site(u8),
    /// Heading of a group: the number of the group.
    Heading(u8),
    /// File of the configuration that is edited as text.
    File,
    /// Path in the chooser of folders.
    ChooserPath,
    /// Switch for hidden folders in the chooser of folders.
    HiddenFolders,
    /// Address or network to ban, the duration of the ban, and its reason.
    BanAddress,
    BanTime,
    BanReason,
    /// Selection of the stored responses to drop, its URL or tag, and the website of the responses.
    DropSelection,
    DropText,
    DropSite,
}

/// Column that the websites are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortKey {
    #[default]
    Name,
    State,
    Kind,
    Address,
    Php,
    Protocol,
    Trust,
    Rate,
}

/// Time that the charts show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Span {
    #[default]
    Minute,
    TenMinutes,
    Hour,
}

impl Span {
    /// All spans, the shortest first.
    pub const ALL: [Span; 3] = [Span::Minute, Span::TenMinutes, Span::Hour];

    /// Returns the length in seconds.
    pub fn seconds(self) -> u64 {
        match self {
            Span::Minute => 60,
            Span::TenMinutes => 600,
            Span::Hour => 3_600,
        }
    }
}

/// Logs that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogChoice {
    #[default]
    All,
    Errors,
    Access,
    /// Warnings, errors, and requests whose response has a status of 400 or above.
    Problems,
}

/// Part of the page *Certificates*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CertificateView {
    #[default]
    Websites,
    /// Trust of browsers in the local CA.
    Browsers,
}

/// Repair of a failed check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// Writes a start page into the folder of the new website.
    CreateStartPage,
    /// Installs the certificate of the local CA in the stores of the browsers.
    TrustCertificates,
    /// Copies the line of `/etc/hosts` that leads the name of the new website to this computer.
    CopyHostsLine,
    /// Adds the website at the second port in place of the first one, which another program holds.
    UsePort(u16, u16),
    /// Puts another text into the field `name`.
    UseName(String),
    /// Puts another text into the field `folder`.
    UseFolder(String),
}

/// Effect of the first button of a page about services on the selected row. The act carries it, so that the button does
/// what its label says, even if a report has changed the state of the row since the label was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceSwitch {
    Drain,
    /// Ends the drain of a server.
    Enable,
    Ban,
    LiftBan,
    StartPhp,
    RestartPhp,
    StartDatabase,
    StopDatabase,
}

impl ServiceSwitch {
    /// Returns the page that has the button.
    pub fn page(self) -> PageName {
        match self {
            ServiceSwitch::Drain | ServiceSwitch::Enable => PageName::Upstreams,
            ServiceSwitch::Ban | ServiceSwitch::LiftBan => PageName::Traffic,
            ServiceSwitch::StartPhp | ServiceSwitch::RestartPhp => PageName::Php,
            ServiceSwitch::StartDatabase | ServiceSwitch::StopDatabase => PageName::Databases,
        }
    }
}

/// Act of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    Show(PageName),
    /// Selects a row by its key.
    Select(String),
    /// Carries out the main act for the selected row, such as opening the website.
    OpenRow,
    Filter(String),
    FocusFilter,
    Sort(SortKey),
    /// Starts a server in the usual way.
    StartServer,
    StartBy(Starter),
    /// Replaces the first port by the second in the configuration, and starts the server.
    StartAt(u16, u16),
    /// Connects to the server again, after a failure.
    ConnectAgain,
    StopServer,
    RestartServer,
    ReloadServer,
    /// Opens the selected website in the browser.
    OpenSite,
    /// Opens the folder of the selected website.
    OpenFolder,
    /// Opens the folder of the selected website in the editor of the user.
    OpenEditor,
    /// Opens the configuration file in the editor of the desktop.
    OpenConfig,
    AddSite,
    /// Edits the selected website in a form.
    EditSite,
    /// Lists the websites of the configuration file while the server is stopped.
    ShowFileConfig,
    /// Edits the common keys of the server in a form.
    EditServer,
    /// Lets the program at the path of the server take over from the running process.
    UpgradeServer,
    /// Edits the configuration as text.
    EditText,
    DuplicateSite,
    RemoveSite,
    /// Enables the selected website if it is disabled, and disables it otherwise.
    ToggleSite,
    /// Drains or enables the selected server, bans the selected client or lifts its ban, restarts or starts the
    /// selected pool of PHP, or starts or stops the selected database.
    SwitchService(ServiceSwitch),
    /// Stops the selected pool of PHP.
    StopService,
    /// Copies what the page offers: the connection string of a database, or a command.
    CopyService,
    ShowCertificates(CertificateView),
    /// Reverts the last change that this window made.
    Undo,
    /// Reverts the newest change of the history.
    UndoNewest,
    /// Restores the file as it was before the selected change of the history, which also reverts later changes of it.
    GoBack,
    /// Carries out an undo that was refused, because it discards edits that are not in the history.
    DiscardEdits,
    SetField(FieldId, String),
    LeaveField(FieldId),
    /// Uses folders that were dropped onto the window: paths or `file:` URLs, one on each line.
    Drop(String),
    /// Opens the chooser of folders.
    ChooseFolder,
    /// Extends the path in the chooser of folders.
    CompletePath,
    /// Uses the folder that the chooser names.
    UseFolder,
    /// Creates the folder that the chooser names, or proposes a name.
    NewFolder,
    Submit,
    Cancel,
    /// Sets the text of the configuration to the typed text. The number is the byte position of the cursor.
    SetText(String, usize),
    /// Proposes completions at this byte position of the cursor.
    Complete(usize),
    /// Hides the proposals.
    EndCompletion,
    /// Closes a question without an effect.
    Stay,
    /// Discards unsaved input, and carries out the act that the question has delayed.
    Discard,
    /// Keeps the input after another program has edited the file. Saving overwrites values that differ.
    KeepInput,
    /// Shows the file as another program has edited it, without the input.
    TakeOther,
    Repair(Fix),
    ShowSpan(Span),
    ShowLog(LogChoice),
    /// Shows the logs. From the list of websites, only the lines of the selected website are shown.
    ShowSiteLog,
    /// Chooses what the page shows. On the page of the logs: the lines of the website with this name, or all lines if
    /// the name is empty.
    Choose(String),
    FollowLog(bool),
    SetLevel(Level),
    Refresh,
    CopyLines,
    /// Copies why the server has ended or could not start.
    CopyReason,
    /// Shows the pages of a stopped server instead of the reason of its end.
    CloseReason,
    /// Copies this text, such as an error.
    CopyText(String),
    DismissNotice,
    Help,
    Quit,
}

impl Act {
    /// Returns true for input that instructs nothing yet, such as typing.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Act::SetField(..)
                | Act::LeaveField(_)
                | Act::SetText(..)
                | Act::Complete(_)
                | Act::CompletePath
                | Act::EndCompletion
                | Act::Filter(_)
                | Act::Select(_)
        )
    }
}
