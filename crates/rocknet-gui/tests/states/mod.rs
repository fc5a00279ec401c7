//! Models in every state, for the tests that draw them.

use std::path::PathBuf;
use std::time::Duration;

use rocknet_control::api::Permission;
use rocknet_control::ban::{BanSummary, OffenderSummary};
use rocknet_control::config::{Change, Checked, ConfigState, ConfigText, Finding, Saved};
use rocknet_control::doctor::{DoctorCheck, DoctorVerdict};
use rocknet_control::logs::{LogEvent, LogKind};
use rocknet_control::site_form::{FieldInput as KeyInput, SiteField, SiteForm};
use rocknet_control::{CertificateSummary, SiteKind, SiteSummary, Status, UpstreamSummary};
use rocknet_gui::act::{Act, FieldId, PageName};
use rocknet_gui::elsewhere::{Elsewhere, ServerPlace};
use rocknet_gui::job::{
    Absence, BanReport, DatabaseReport, Ending, EndingCause, FileConfig, FileFinding, FileSite, FolderTrouble,
    Inspection, Listing, PhpReport, Poll, Purpose, Report, StartFailure, UpstreamReport, Visit,
};
use rocknet_gui::model::{Fetched, Model, Question, Settings};

fn site(number: usize) -> SiteSummary {
    SiteSummary {
        name: format!("site-{number}.localhost"),
        urls: vec![format!("https://site-{number}.localhost:8443/")],
        root: Some(format!("/srv/websites/site-{number}").into()),
        kind: SiteKind::Files,
        disabled: number % 7 == 3,
        fault: (number % 11 == 5).then(|| "the folder is missing".to_owned()),
        ..SiteSummary::default()
    }
}

pub fn online(sites: usize, error: Option<&str>) -> Model {
    let mut model = Model::new(Settings::default());
    model.report(Report::Connected("/run/rocknet/control.sock".into()));
    for second in 0..90 {
        model.report(Report::Polled(Box::new(Poll {
            at: Duration::from_secs(second),
            status: Status {
                version: "0.1.0".to_owned(),
                requests: second * second,
                cpu_ms: second * 30,
                memory_bytes: 34 << 20,
                connections_open: second % 9,
                duration_counts: vec![second, second * 2, second * 3],
                last_reload_error: error.map(str::to_owned),
                config_file: Some("/etc/rocknet/rocknet.toml".into()),
                ..Status::default()
            },
            sites: Some((0..sites).map(site).collect()),
            ..Poll::default()
        })));
    }
    model
}

/// Returns a model for each state, with its name.
pub fn states() -> Vec<(&'static str, Model)> {
    let absent = |absence| {
        let mut model = Model::new(Settings::default());
        model.report(Report::Absent(absence));
        model
    };
    let mut failed = Model::new(Settings::default());
    failed.report(Report::StartFailed(StartFailure {
        reason: "cannot start: port 8080 is in use by nginx (pid 7)".to_owned().into(),
        lines: vec!["a line".to_owned(); 5],
        port: Some((8080, 8081)),
    }));
    let mut ended = online(3, None);
    ended.report(Report::Ended(Ending {
        cause: EndingCause::Signal(9),
        lines: vec!["thread 'rn-worker-1' panicked at a place with a long name: index out of bounds".to_owned(); 5],
    }));
    ended.report(Report::Absent(Absence::Stopped(true)));
    let mut lost = online(3, None);
    lost.report(Report::Absent(Absence::Failed("no reply".to_owned())));
    let mut told = online(3, Some("rocknet.toml:3:1: unknown key"));
    told.report(Report::Failed("something @ failed\nwith details".to_owned().into()));
    let mut edited = online(3, None);
    edited.report(Report::Polled(Box::new(Poll {
        config: Some(ConfigState {
            file: "/etc/rocknet/rocknet.toml".into(),
            added: vec!["by-hand.localhost".to_owned()],
            ..ConfigState::default()
        }),
        ..Poll::default()
    })));
    let mut starting = Model::new(Settings::default());
    starting.report(Report::Starting);
    let mut stopping = online(3, None);
    assert!(!stopping.act(Act::StopServer).is_empty());
    let mut upgrading = online(3, None);
    assert!(!upgrading.act(Act::UpgradeServer).is_empty());
    let mut partial = online(3, None);
    partial.report(Report::Polled(Box::new(Poll {
        sites_error: Some("the list of websites could not be made".to_owned()),
        traffic_error: Some("no rates".to_owned()),
        ..Poll::default()
    })));
    let mut reading = online(3, None);
    reading.report(Report::Permission(Permission::Read));
    vec![
        ("edited by hand", edited),
        ("reading token", reading),
        ("stopped with websites", stopped()),
        ("starting", starting),
        ("stopping", stopping),
        ("upgrading", upgrading),
        ("partial", partial),
        (
            "elsewhere",
            elsewhere(&Report::Connected("/run/user/1000/rocknet.sock".into())),
        ),
        (
            "not reachable",
            elsewhere(&Report::Absent(Absence::Unreachable("127.0.0.1:7625".to_owned()))),
        ),
        (
            "wrong token",
            elsewhere(&Report::Absent(Absence::WrongToken("127.0.0.1:7625".to_owned()))),
        ),
        ("connecting", Model::new(Settings::default())),
        ("first start", absent(Absence::Stopped(false))),
        ("stopped", absent(Absence::Stopped(true))),
        (
            "no access",
            absent(Absence::NoAccess("/run/rocknet/control.sock".into())),
        ),
        ("failed start", failed),
        ("ended", ended),
        ("no reply", absent(Absence::NoReply("/run/rocknet/control.sock".into()))),
        ("another account", absent(Absence::Foreign("127.0.0.1:7625".to_owned()))),
        ("lost", lost),
        ("broken file", told),
        ("no websites", online(0, None)),
        ("500 websites", online(500, None)),
    ]
}

/// Returns a model of a server on another computer, after a report about it.
fn elsewhere(report: &Report) -> Model {
    let mut model = Model::new(Settings::default());
    model.report(Report::Place(Elsewhere {
        place: ServerPlace::Socket,
        socket: "/run/user/1000/rocknet.sock".to_owned(),
        ..Elsewhere::default()
    }));
    model.report(report.clone());
    if model.link.is_online() {
        model.report(Report::Polled(Box::new(Poll {
            sites: Some((0..3).map(site).collect()),
            ..Poll::default()
        })));
    }
    model
}

/// Fills in the folder of a website that is added. The folder can be read, and has no start page.
pub fn fill_in_folder(model: &mut Model) {
    model.act(Act::SetField(FieldId::Folder, "/srv/new".to_owned()));
    let inspection = Inspection {
        exists: true,
        readable: true,
        ..Inspection::default()
    };
    model.report(Report::Inspected("/srv/new".into(), inspection));
}

/// Returns a model with a website that was added, all of whose checks fail, so that all repairs are shown.
pub fn added() -> Model {
    let mut model = online(3, None);
    model.act(Act::AddSite);
    fill_in_folder(&mut model);
    model.act(Act::SetField(FieldId::Name, "new.test".to_owned()));
    assert!(!model.act(Act::Submit).is_empty());
    let saved = Saved {
        message: "saved".to_owned(),
        file: "/etc/rocknet/rocknet.toml".into(),
        revision: "r2".to_owned(),
        can_undo: true,
        findings: Vec::new(),
    };
    model.report(Report::Edited(Purpose::Add("new.test".to_owned()), Ok(saved)));
    model.report(Report::Visited(Visit {
        site: "new.test".to_owned(),
        url: "https://new.test:8443/".to_owned(),
        reply: Err("connection refused (os error 111)".to_owned().into()),
        name_resolves: false,
    }));
    model
}

/// Returns a model of a stopped server, with the websites and the errors of its file.
fn stopped() -> Model {
    let mut model = Model::new(Settings::default());
    model.report(Report::Absent(Absence::Stopped(true)));
    let site = |number: usize| FileSite {
        name: format!("site-{number}.localhost"),
        root: Some("/srv/websites".into()),
        kind: SiteKind::Files,
        is_disabled: number == 3,
        ..FileSite::default()
    };
    let error = FileFinding {
        is_error: true,
        place: "rocknet.toml:7".to_owned(),
        message: "unknown key `rot` in [site.\"site-1.localhost\"]".to_owned(),
        help: "did you mean `root`?".to_owned(),
    };
    model.report(Report::FileConfig(Box::new(FileConfig {
        file: "/home/me/.config/rocknet/rocknet.toml".into(),
        sites: (0..40).map(site).collect(),
        findings: vec![error],
    })));
    model
}

/// Sends the lists that a page waits for.
pub fn fill(model: &mut Model, page: PageName) {
    if !model.link.is_online() {
        return;
    }
    match page {
        PageName::Websites => drop(model.act(Act::Select("site-1.localhost".to_owned()))),
        PageName::Certificates => {
            let certificate = CertificateSummary {
                site: "site-1.localhost".to_owned(),
                names: vec!["site-1.localhost".to_owned()],
                days_left: 6,
                ..CertificateSummary::default()
            };
            drop(model.report(Report::Certificates(Ok(vec![certificate]))));
        }
        PageName::CheckUp => drop(model.report(Report::Doctor(Ok(vec![DoctorCheck {
            check: "port".to_owned(),
            verdict: DoctorVerdict::Bad,
            found: "taken: stop nginx".to_owned(),
            ..DoctorCheck::default()
        }])))),
        PageName::Upstreams => {
            let upstream = UpstreamSummary {
                address: "http://10.0.0.1:3000".to_owned(),
                ..UpstreamSummary::default()
            };
            drop(model.report(Report::Upstreams(Ok(UpstreamReport {
                list: vec![upstream],
                ..UpstreamReport::default()
            }))));
            drop(model.act(Act::Select("http://10.0.0.1:3000".to_owned())));
        }
        PageName::Traffic => {
            let ban = BanSummary {
                address: "192.0.2.7".to_owned(),
                reason: "failed logins".to_owned(),
                until: Some(1_800_000_000),
                ..BanSummary::default()
            };
            let offender = OffenderSummary {
                address: "2001:db8:1234:5678::/64".to_owned(),
                logins: 3,
                not_found: 1_234,
                refused: 17,
                handshakes: 2,
                is_banned: false,
            };
            drop(model.report(Report::Bans(Ok(BanReport {
                total: 501,
                bans: vec![ban],
                offenders: vec![offender],
            }))));
            drop(model.act(Act::Select("192.0.2.7".to_owned())));
        }
        PageName::Php => drop(model.report(Report::Php(Ok(PhpReport {
            missing: Some(vec!["PHP 8.2 is missing (`apt install php8.2-fpm`)".to_owned()]),
            ..PhpReport::default()
        })))),
        PageName::Databases => drop(model.report(Report::Databases(DatabaseReport::default()))),
        PageName::History => drop(model.report(Report::History(Err("no".to_owned())))),
        PageName::Logs => drop(model.report(Report::Log(vec![LogEvent {
            kind: LogKind::Error,
            line: "2026-11-28T00:00:00 WARN  slow".to_owned(),
            site: None,
            lost: 0,
        }]))),
        _ => {}
    }
}

/// Draws the chooser of folders: while it lists them, with many, and with an error.
pub fn choose(model: &mut Model, mut draw: impl FnMut(&Model, &str)) {
    if model.act(Act::ChooseFolder).is_empty() {
        return;
    }
    draw(model, "listing folders");
    let folder = model
        .chooser
        .as_ref()
        .map(|chooser| PathBuf::from(&chooser.path))
        .unwrap();
    let folder = folder.components().collect::<PathBuf>();
    let path = match folder.as_os_str().is_empty() {
        true => "/home/me".into(),
        false => folder.clone(),
    };
    let listing = Listing {
        path: path.clone(),
        folders: (0..600).map(|number| format!("folder {number}")).collect(),
        left_out: 3,
    };
    model.report(Report::Listed(folder, Ok(listing)));
    assert!(model.chooser.as_ref().is_some_and(|chooser| chooser.chosen().is_some()));
    draw(model, "folders");
    model.report(Report::Listed(path.clone(), Err(FolderTrouble::Denied)));
    draw(model, "folder that cannot be read");
    model.report(Report::Listed(path.clone(), Err(FolderTrouble::Waiting)));
    draw(model, "folder that does not reply");
    model.report(Report::Listed(path, Err(FolderTrouble::NotTried)));
    draw(model, "too many folders that do not reply");
    model.act(Act::Cancel);
}

/// Draws the form of a website, the text of the configuration, the differences of a change, and a question.
pub fn edit(model: &mut Model, mut draw: impl FnMut(&Model, &str)) {
    model.act(Act::Show(PageName::Websites));
    model.act(Act::Select("site-1.localhost".to_owned()));
    if model.act(Act::EditSite).is_empty() {
        return;
    }
    draw(model, "loading form");
    model.report(Report::SiteForm("site-1.localhost".to_owned(), Ok(Box::new(form()))));
    draw(model, "form");
    model.act(Act::SetField(FieldId::SiteName, "other.localhost".to_owned()));
    model.act(Act::Cancel);
    draw(model, "question");
    model.act(Act::Discard);
    model.act(Act::Show(PageName::Server));
    model.act(Act::EditServer);
    let server = SiteForm {
        name: String::new(),
        ..form()
    };
    model.report(Report::SiteForm(String::new(), Ok(Box::new(server))));
    draw(model, "form of the server");
    model.act(Act::Cancel);
    model.act(Act::Show(PageName::CheckUp));
    model.viewed_command = Some("rocknet check --config /etc/rocknet/rocknet.toml".to_owned());
    draw(model, "command of a server elsewhere");
    model.act(Act::Show(PageName::Websites));
    model.act(Act::EditText);
    let text = ConfigText {
        file: "/etc/rocknet/rocknet.toml".into(),
        files: vec!["/etc/rocknet/rocknet.toml".into(), "/etc/rocknet/a.toml".into()],
        text: "# mine\n[server]\nworkers = 0\nmode = \"dev\"\n".to_owned(),
        revision: "1".to_owned(),
        is_loaded: true,
    };
    model.report(Report::ConfigText(None, Ok(Box::new(text.clone()))));
    let mut finding = Finding::warning("bad-value", "`workers` is too small");
    (finding.is_error, finding.line, finding.column) = (true, 3, 11);
    let checked = Checked {
        is_valid: false,
        findings: vec![finding],
    };
    let number = (1..50).find(|number| {
        model.report(Report::Checked(*number, Ok(checked.clone())));
        matches!(&model.text_edit, Fetched::Loaded(edit) if !edit.findings.is_empty())
    });
    assert!(number.is_some(), "the text is checked");
    draw(model, "text with an error");
    model.act(Act::SetText("# mine\n[server]\nwor".to_owned(), 19));
    model.act(Act::Complete(19));
    draw(model, "proposals");
    let newer = ConfigText {
        text: "# theirs\n".to_owned(),
        revision: "2".to_owned(),
        ..text
    };
    model.report(Report::ConfigText(None, Ok(Box::new(newer))));
    assert_eq!(model.question(), Some(Question::Conflict));
    draw(model, "conflict");
    model.act(Act::Cancel);
    model.act(Act::Discard);
    model.act(Act::Show(PageName::History));
    model.report(Report::History(Ok(vec![Change {
        id: 4,
        unix_time: 1,
        file: "/etc/rocknet/rocknet.toml".into(),
        revision: "1".to_owned(),
        what: "set server.workers".to_owned(),
        diff: "--- a\n+++ b\n@@ -1 +1 @@\n-workers = 1\n+workers = 2\n".to_owned(),
    }])));
    model.act(Act::Select("4".to_owned()));
    model.act(Act::OpenRow);
    draw(model, "diff");
}

/// Returns a form with every kind of input.
fn form() -> SiteForm {
    let field = |name: &str, input, text: &str| SiteField {
        name: name.to_owned(),
        label: name.to_owned(),
        group: if name == "root" { "Content" } else { "More" }.to_owned(),
        input,
        help: "Help. More help.".to_owned(),
        default: "auto".to_owned(),
        text: text.to_owned(),
        ..SiteField::default()
    };
    SiteForm {
        name: "site-1.localhost".to_owned(),
        file: "/etc/rocknet/rocknet.toml".into(),
        line: 3,
        revision: "1".to_owned(),
        fields: vec![
            field("root", KeyInput::Text, "/srv"),
            field("browse", KeyInput::Switch, "true"),
            field("tls", KeyInput::Choice, ""),
            field("aliases", KeyInput::List, "a\nb"),
            field("headers", KeyInput::Map, ""),
            SiteField {
                other: Some("{ to = [] }".to_owned()),
                ..field("log", KeyInput::Text, "")
            },
        ],
    }
}
