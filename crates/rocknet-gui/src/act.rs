//! Acts of the user, which a button, a key or a row stands for.

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
    Php,
    Databases,
    Certificates,
    CheckUp,
    History,
    Settings,
}

impl PageName {
    /// Pages in the order of the navigation.
    pub const NAVIGATION: [PageName; 11] = [
        PageName::Websites,
        PageName::Activity,
        PageName::Logs,
        PageName::Server,
        PageName::Upstreams,
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
            page => page,
        }
    }
}

/// Field that a text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldId {
    Folder,
    Kind,
    Name,
    Address,
    Theme,
    Language,
    /// Place of the server, and the fields for one elsewhere.
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
    /// Puts another text into the field `name`.
    UseName(String),
    /// Puts another text into the field `folder`.
    UseFolder(String),
}

/// Act of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    Show(PageName),
    /// Selects a row by its key.
    Select(String),
    /// Does the usual thing with the selected row.
    OpenRow,
    Filter(String),
    FocusFilter,
    Sort(SortKey),
    /// Starts a server in the usual way.
    StartServer,
    StartBy(Starter),
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
    /// Edits the configuration as text.
    EditText,
    DuplicateSite,
    RemoveSite,
    /// Enables the selected website if it is disabled, and disables it otherwise.
    ToggleSite,
    /// Drains or enables the selected server, restarts the selected pool of PHP, or starts or stops the selected
    /// database.
    SwitchService,
    /// Copies what the page offers: the connection string of a database, or a command.
    CopyService,
    ShowCertificates(CertificateView),
    /// Takes the last change of this window back.
    Undo,
    /// Takes the newest change of the history back.
    UndoNewest,
    SetField(FieldId, String),
    LeaveField(FieldId),
    ChooseFolder,
    Submit,
    Cancel,
    /// Takes the text of the configuration that the user has typed, and the byte of the cursor in it.
    SetText(String, usize),
    /// Proposes texts for the byte of the cursor.
    Complete(usize),
    /// Hides the proposals.
    EndCompletion,
    /// Closes a question without an effect.
    Stay,
    /// Discards unsaved input, and does what the question was about.
    Discard,
    /// Continues with the input after an edit by another program, which saving replaces where they differ.
    KeepInput,
    /// Shows the file as another program has edited it, without the input.
    TakeOther,
    Repair(Fix),
    ShowSpan(Span),
    ShowLog(LogChoice),
    /// Shows the logs: those of the selected website, if the websites are shown.
    ShowSiteLog,
    /// Chooses what the page shows: on the page with the logs, the website with this name, or all if it is empty.
    Choose(String),
    FollowLog(bool),
    SetLevel(Level),
    Refresh,
    CopyLines,
    DismissNotice,
    Help,
    Quit,
}
