//! The window itself, in this process, on a display in memory: every page in every state is drawn, and every button
//! returns its act.

#[path = "display/mod.rs"]
mod display;
#[path = "layout/mod.rs"]
mod layout;
#[path = "../src/view/mod.rs"]
mod view;

use std::collections::HashSet;
use std::process::{Command, ExitCode};
use std::time::Duration;

use fltk::app;
use fltk::draw;
use fltk::image::SvgImage;
use fltk::prelude::*;
use rocknet_control::config::{Change, Checked, ConfigText, Finding};
use rocknet_control::doctor::{DoctorCheck, DoctorVerdict};
use rocknet_control::logs::{LogEvent, LogKind};
use rocknet_control::site_form::{FieldInput as KeyInput, SiteField, SiteForm};
use rocknet_control::{CertificateSummary, SiteKind, SiteSummary, Status, UpstreamSummary};
use rocknet_gui::act::{Act, FieldId, PageName};
use rocknet_gui::job::{Absence, DatabaseReport, Inspection, PhpReport, Poll, Report, StartFailure, UpstreamReport};
use rocknet_gui::model::{Fetched, Model, Question, Settings};
use rocknet_gui::screen::Body;
use rocknet_gui::theme::ThemeChoice;
use rocknet_gui::words::Language;
use view::window::Window;

/// Set in the process that has a display.
const CHILD: &str = "ROCKNET_GUI_TEST_CHILD";

/// Maximum resident memory with 500 websites.
const MAX_MEMORY: u64 = 45 << 20;

fn main() -> ExitCode {
    if let Some(test) = std::env::var_os(CHILD) {
        match test.to_str() {
            Some("layout") => the_smallest_window_shows_everything(),
            _ => every_page_is_drawn(),
        }
        return ExitCode::SUCCESS;
    }
    // Listings and filters of the test harness are for other programs.
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let Some(display) = display::Display::start(&["xdotool"]) else {
        return ExitCode::SUCCESS;
    };
    let home = tempfile::tempdir().unwrap();
    let mut exit = ExitCode::SUCCESS;
    for (name, child, scale) in [
        ("every_page_is_drawn", "pages", "1"),
        ("the_smallest_window_shows_everything", "layout", "1"),
        ("the_smallest_window_shows_everything_at_200_%", "layout", "2"),
    ] {
        let status = Command::new(std::env::current_exe().unwrap())
            .env(CHILD, child)
            .env("FLTK_SCALING_FACTOR", scale)
            .env("DISPLAY", &display.name)
            .env("HOME", home.path())
            .status()
            .unwrap();
        if status.success() {
            println!("test {name} ... ok");
        } else {
            println!("test {name} ... FAILED");
            exit = ExitCode::FAILURE;
        }
    }
    exit
}

/// Draws every page and state in the smallest window, at the scale of `FLTK_SCALING_FACTOR`.
fn the_smallest_window_shows_everything() {
    let _app = app::App::default();
    app::set_visible_focus(true);
    let mut window = Window::new(ThemeChoice::Light.theme(None));
    let (w, h) = layout::SMALLEST;
    window.window.set_size(w, h);
    window.window.show();
    window.window.wait_for_expose();
    let wanted: f32 = std::env::var("FLTK_SCALING_FACTOR").unwrap().parse().unwrap();
    assert!((layout::scale() - wanted).abs() < 0.01, "{}", layout::scale());
    for (name, mut model) in states() {
        for language in Language::ALL {
            model.settings.language = language;
            for page in PageName::NAVIGATION {
                model.act(Act::Show(page));
                fill(&mut model, page);
                show_smallest(&mut window, &model, &format!("{name}, {page:?}, {language:?}"));
            }
            // The longest notice is above the contents, and the form has all of its fields and problems.
            model.act(Act::Help);
            model.act(Act::AddSite);
            show_smallest(&mut window, &model, &format!("{name}, adding, {language:?}"));
            model.act(Act::LeaveField(FieldId::Folder));
            model.act(Act::LeaveField(FieldId::Name));
            show_smallest(&mut window, &model, &format!("{name}, problems, {language:?}"));
            model.act(Act::Cancel);
            edit(&mut model, |model, state| {
                show_smallest(&mut window, model, &format!("{name}, {state}, {language:?}"));
            });
        }
    }
    assert_eq!(width_on_screen(), (w as f32 * wanted) as i32);
}

/// Returns the width of the window in pixels, as the X server knows it.
fn width_on_screen() -> i32 {
    let output = Command::new("xdotool")
        .args([
            "search",
            "--onlyvisible",
            "--name",
            "RockNet",
            "getwindowgeometry",
            "--shell",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let width = text.lines().find_map(|line| line.strip_prefix("WIDTH="));
    width.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

fn show_smallest(window: &mut Window, model: &Model, name: &str) {
    window.show(model);
    settle(window);
    assert_eq!((window.window.w(), window.window.h()), layout::SMALLEST, "{name}");
    layout::check(window, name);
}

fn every_page_is_drawn() {
    let _app = app::App::default();
    app::set_visible_focus(true);
    let mut window = Window::new(ThemeChoice::Light.theme(None));
    // Captured pictures stay in memory, so it is measured before them.
    memory_is_bounded(&mut window);
    let mut seen = HashSet::new();
    for (name, mut model) in states() {
        for (theme, language) in [
            (ThemeChoice::Light, Language::English),
            (ThemeChoice::Dark, Language::German),
        ] {
            model.settings = Settings { theme, language };
            for page in PageName::NAVIGATION {
                model.act(Act::Show(page));
                fill(&mut model, page);
                window.show(&model);
                settle(&window);
                let shown = colours(&mut window);
                assert!(view::symbols::symbol(page, rocknet_gui::theme::LIGHT.text).is_some());
                assert!(shown.len() > 4, "{name} {page:?} {theme:?}: {} colours", shown.len());
                assert!(shown.contains(&background(theme)), "{name} {page:?} {theme:?}");
                press_all(&mut window, &model, name);
                seen.insert(kind(&model));
            }
        }
        add_website(&mut window, &mut model);
        edit(&mut model, |model, state| {
            window.show(model);
            settle(&window);
            assert!(colours(&mut window).len() > 4, "{state}");
            press_all(&mut window, model, state);
            seen.insert(kind(model));
        });
        resize(&mut window, &model);
    }
    icon_is_that_of_the_drawing();
    symbols_are_those_of_the_drawing();
    assert_eq!(seen.len(), 7, "every kind of contents was drawn: {seen:?}");
}

/// Draws every page with 500 websites, and measures the memory of the process.
fn memory_is_bounded(window: &mut Window) {
    let mut model = online(500, None);
    window.show(&model);
    window.window.show();
    window.window.wait_for_expose();
    for page in PageName::NAVIGATION {
        model.act(Act::Show(page));
        fill(&mut model, page);
        window.show(&model);
        settle(window);
    }
    let memory = resident();
    println!("resident memory with 500 websites: {} MiB", memory >> 20);
    assert!(memory <= MAX_MEMORY, "{memory}");
}

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

fn online(sites: usize, error: Option<&str>) -> Model {
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
            traffic: None,
            config: None,
        })));
    }
    model
}

/// Returns a model for each state, with its name.
fn states() -> Vec<(&'static str, Model)> {
    let absent = |absence| {
        let mut model = Model::new(Settings::default());
        model.report(Report::Absent(absence));
        model
    };
    let mut failed = Model::new(Settings::default());
    failed.report(Report::StartFailed(StartFailure {
        reason: "cannot start: port 8080 is in use by nginx (pid 7)".to_owned(),
        lines: vec!["a line".to_owned(); 5],
    }));
    let mut lost = online(3, None);
    lost.report(Report::Absent(Absence::Failed("no reply".to_owned())));
    let mut told = online(3, Some("rocknet.toml:3:1: unknown key"));
    told.report(Report::Failed("something @ failed\nwith details".to_owned()));
    vec![
        ("connecting", Model::new(Settings::default())),
        ("first start", absent(Absence::Stopped(false))),
        ("stopped", absent(Absence::Stopped(true))),
        (
            "no access",
            absent(Absence::NoAccess("/run/rocknet/control.sock".into())),
        ),
        ("failed start", failed),
        ("lost", lost),
        ("broken file", told),
        ("no websites", online(0, None)),
        ("500 websites", online(500, None)),
    ]
}

/// Sends the lists that a page waits for.
fn fill(model: &mut Model, page: PageName) {
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

fn add_website(window: &mut Window, model: &mut Model) {
    if model.act(Act::AddSite).is_empty() {
        return;
    }
    model.act(Act::SetField(FieldId::Folder, "/srv/new".to_owned()));
    let inspection = Inspection {
        exists: true,
        readable: true,
        ..Inspection::default()
    };
    model.report(Report::Inspected("/srv/new".into(), inspection));
    for kind in ["files", "proxy", "php"] {
        model.act(Act::SetField(FieldId::Kind, kind.to_owned()));
        model.act(Act::LeaveField(FieldId::Address));
        window.show(model);
        settle(window);
        assert!(colours(window).len() > 4);
        press_all(window, model, kind);
    }
    model.act(Act::Cancel);
    assert_eq!(model.question(), Some(Question::Leave));
    window.show(model);
    settle(window);
    press_all(window, model, "question");
    model.act(Act::Discard);
    assert_eq!(model.page, PageName::Websites);
}

/// Draws the form of a website, the text of the configuration, the differences of a change, and a question.
fn edit(model: &mut Model, mut draw: impl FnMut(&Model, &str)) {
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
    model.act(Act::EditText);
    let text = ConfigText {
        file: "/etc/rocknet/rocknet.toml".into(),
        files: vec!["/etc/rocknet/rocknet.toml".into(), "/etc/rocknet/a.toml".into()],
        text: "# mine\n[server]\nworkers = 0\nmode = \"dev\"\n".to_owned(),
        revision: "1".to_owned(),
        is_loaded: true,
    };
    model.report(Report::ConfigText(None, Ok(Box::new(text))));
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

/// Draws the window in its smallest size, and in a large one.
fn resize(window: &mut Window, model: &Model) {
    for (w, h) in [(720, 480), (1_240, 760), (1_000, 680)] {
        window.window.set_size(w, h);
        window.show(model);
        settle(window);
        assert!(colours(window).len() > 4, "{w} x {h}");
    }
}

/// Presses every button that can be pressed, and compares the acts with those of the screen.
fn press_all(window: &mut Window, model: &Model, state: &str) {
    while window.next_act().is_some() {}
    let pressed = window.press_all();
    let mut acts = Vec::new();
    while let Some(act) = window.next_act() {
        acts.push(act);
    }
    assert_eq!(pressed, acts.len(), "{state}: a button does nothing");
    let screen = rocknet_gui::pages::screen(model);
    let wanted = screen.actions.iter().filter(|button| button.enabled);
    for button in wanted {
        assert!(
            acts.contains(&button.act),
            "{state}: {} is not in the window",
            button.label
        );
    }
}

/// Compares the pixels of the icon with the drawing. Two programs draw it, so edges differ a little.
fn icon_is_that_of_the_drawing() {
    let mut drawing = SvgImage::from_data(include_str!("../../../packaging/gui/rocknet-gui.svg")).unwrap();
    drawing.scale(view::icon::SIZE, view::icon::SIZE, true, true);
    drawing.normalize();
    let drawn = drawing.to_rgb_data();
    assert_eq!(drawn.len(), view::icon::PIXELS.len());
    let difference: u64 = drawn
        .iter()
        .zip(view::icon::PIXELS)
        .map(|(one, other)| u64::from(one.abs_diff(*other)))
        .sum();
    let mean = difference / drawn.len() as u64;
    assert!(mean < 4, "render packaging/gui/rocknet-gui-64.rgba again: {mean}");
}

/// Compares the opacity of the symbols with their drawing.
fn symbols_are_those_of_the_drawing() {
    let mut drawing = SvgImage::from_data(include_str!("../../../packaging/gui/symbols.svg")).unwrap();
    let (width, height) = (view::symbols::DRAWN * PageName::NAVIGATION.len(), view::symbols::DRAWN);
    drawing.scale(width as i32, height as i32, true, true);
    drawing.normalize();
    let drawn = drawing.to_rgb_data();
    let opacity: Vec<u8> = drawn.chunks_exact(4).map(|pixel| pixel[3]).collect();
    assert_eq!(opacity.len(), view::symbols::OPACITY.len());
    let pairs = opacity.iter().zip(view::symbols::OPACITY);
    let difference: u64 = pairs.map(|(one, other)| u64::from(one.abs_diff(*other))).sum();
    let mean = difference / opacity.len() as u64;
    assert!(mean < 4, "render packaging/gui/symbols.a8 again: {mean}");
}

fn kind(model: &Model) -> &'static str {
    match rocknet_gui::pages::screen(model).body {
        Body::Message(_) => "message",
        Body::Table(_) => "table",
        Body::Charts(_) => "charts",
        Body::Lines(_) => "lines",
        Body::Form(_) => "form",
        Body::Diff(_) => "diff",
        Body::Editor(_) => "editor",
    }
}

/// Lets the toolkit draw what has changed.
fn settle(window: &Window) {
    assert!(window.window.shown());
    app::check();
    app::flush();
}

fn background(theme: ThemeChoice) -> [u8; 3] {
    let back = theme.theme(None).back;
    [back.0, back.1, back.2]
}

/// Returns the colours that the window shows, of one pixel in seven.
fn colours(window: &mut Window) -> HashSet<[u8; 3]> {
    let image = draw::capture_window(&mut window.window).unwrap();
    let depth = image.depth() as usize;
    let pixels = image.to_rgb_data();
    pixels
        .chunks_exact(depth)
        .step_by(7)
        .map(|pixel| [pixel[0], pixel[1], pixel[2]])
        .collect()
}

/// Returns the resident memory of this process in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
