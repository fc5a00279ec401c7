//! The window itself, in this process, on a display in memory: every page in every state is drawn, and every button
//! returns its act.

#[path = "display/mod.rs"]
mod display;
#[path = "focus/mod.rs"]
mod focus;
#[path = "layout/mod.rs"]
mod layout;
#[path = "states/mod.rs"]
mod states;
#[path = "../src/view/mod.rs"]
mod view;

use std::collections::HashSet;
use std::process::{Command, ExitCode};

use fltk::app;
use fltk::draw;
use fltk::enums::Event;
use fltk::image::SvgImage;
use fltk::prelude::*;
use rocknet_gui::act::{Act, FieldId, PageName};
use rocknet_gui::job::{Report, Trouble};
use rocknet_gui::model::{Model, Question, Settings};
use rocknet_gui::screen::Body;
use rocknet_gui::theme::ThemeChoice;
use rocknet_gui::words::Language;
use states::{added, choose, edit, fill, fill_in_folder, online, states};
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
            show_smallest(&mut window, &model, &format!("{name}, keys, {language:?}"));
            model.act(Act::Help);
            model.report(Report::Failed(Trouble::Text("A reason of several lines. ".repeat(30))));
            model.act(Act::AddSite);
            show_smallest(&mut window, &model, &format!("{name}, adding, {language:?}"));
            choose(&mut model, |model, state| {
                show_smallest(&mut window, model, &format!("{name}, {state}, {language:?}"));
            });
            model.act(Act::LeaveField(FieldId::Folder));
            model.act(Act::LeaveField(FieldId::Name));
            show_smallest(&mut window, &model, &format!("{name}, problems, {language:?}"));
            model.act(Act::Cancel);
            edit(&mut model, |model, state| {
                show_smallest(&mut window, model, &format!("{name}, {state}, {language:?}"));
            });
        }
    }
    for language in Language::ALL {
        let mut model = added();
        model.settings.language = language;
        show_smallest(&mut window, &model, &format!("added, {language:?}"));
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
        add_website(&mut window, &mut model, &mut seen);
        edit(&mut model, |model, state| {
            window.show(model);
            settle(&window);
            assert!(colours(&mut window).len() > 4, "{state}");
            press_all(&mut window, model, state);
            seen.insert(kind(model));
        });
        resize(&mut window, &model);
    }
    menus_choose_the_right_value();
    folders_are_dropped(&mut window);
    focus::focus_is_kept(&mut window);
    icon_is_that_of_the_drawing();
    symbols_are_those_of_the_drawing();
    assert_eq!(seen.len(), 8, "every kind of contents was drawn: {seen:?}");
}

/// Drops a folder onto a field that has a text, and beside the fields.
fn folders_are_dropped(window: &mut Window) {
    let mut model = online(1, None);
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Folder, "/srv/old".to_owned()));
    window.show(&model);
    settle(window);
    // A form moves the focus to its first field, which is that of the folder.
    let field = app::focus().unwrap().as_base_widget();
    app::copy2("file:///srv/new\r\n");
    for is_field in [true, false] {
        while window.next_act().is_some() {}
        let mut target = match is_field {
            true => field.clone(),
            false => window.drop_area.as_base_widget(),
        };
        for event in [Event::DndEnter, Event::DndDrag, Event::DndRelease] {
            assert!(target.handle_event(event), "{event:?}");
        }
        app::paste_text2(&target);
        let acts: Vec<Act> = std::iter::from_fn(|| window.next_act()).collect();
        assert_eq!(acts, [Act::Drop("file:///srv/new\r\n".to_owned())]);
    }
    // The toolkit finds the area below the pointer, which is outside of the fields.
    assert!(app::handle(Event::DndEnter, &window.window).unwrap());
    let below = app::belowmouse::<fltk::widget::Widget>().unwrap();
    assert_eq!(below.as_widget_ptr(), window.drop_area.as_widget_ptr());
    // File managers release the pointer first, so that it enters the widget below it. The drop is taken all the same.
    app::set_belowmouse(&field);
    let below = app::belowmouse::<fltk::widget::Widget>().unwrap();
    assert_eq!(below.as_widget_ptr(), window.drop_area.as_widget_ptr());
    assert!(app::handle(Event::DndRelease, &window.window).unwrap());
    app::copy2("file:///srv/late\r\n");
    app::paste_text2(&below);
    let acts: Vec<Act> = std::iter::from_fn(|| window.next_act()).collect();
    assert_eq!(acts, [Act::Drop("file:///srv/late\r\n".to_owned())]);
    app::set_belowmouse(&field);
    let below = app::belowmouse::<fltk::widget::Widget>().unwrap();
    assert_eq!(below.as_widget_ptr(), field.as_widget_ptr(), "the drag has ended");
    // Without a drop, the text is pasted into the field as the user has copied it.
    app::copy2("/more");
    app::paste_text2(&field);
    let acts: Vec<Act> = std::iter::from_fn(|| window.next_act()).collect();
    assert!(
        matches!(&acts[..], [Act::SetField(FieldId::Folder, text)] if text.contains("/more")),
        "{acts:?}"
    );
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

fn add_website(window: &mut Window, model: &mut Model, seen: &mut HashSet<&'static str>) {
    if model.act(Act::AddSite).is_empty() {
        return;
    }
    fill_in_folder(model);
    choose(model, |model, state| {
        window.show(model);
        settle(window);
        press_all(window, model, state);
        seen.insert(kind(model));
    });
    for kind in ["files", "proxy", "php"] {
        model.act(Act::SetField(FieldId::Kind, kind.to_owned()));
        model.act(Act::LeaveField(FieldId::Address));
        window.show(model);
        settle(window);
        assert!(colours(window).len() > 4);
        press_all(window, model, kind);
    }
    let mut added = added();
    added.settings = model.settings;
    window.show(&added);
    settle(window);
    press_all(window, &added, "added");
    model.act(Act::Cancel);
    assert_eq!(model.question(), Some(Question::Leave));
    window.show(model);
    settle(window);
    press_all(window, model, "question");
    model.act(Act::Discard);
    assert_eq!(model.page, PageName::Websites);
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

/// Chooses each item of a menu whose labels have letters that mean something to the toolkit.
fn menus_choose_the_right_value() {
    let labels = [
        "/etc/r.toml",
        "sites/a.toml",
        "_php.toml",
        "a|b.toml",
        "a\\b",
        "a\tb",
        "R&D",
        "me@home",
        "same",
        "same",
        "",
        "last",
    ];
    let values = labels.iter().enumerate();
    let mut choices: Vec<(String, String)> = values
        .map(|(at, label)| (at.to_string(), (*label).to_owned()))
        .collect();
    choices.push(("long".to_owned(), "é".repeat(3_000)));
    let shared = view::shared::Shared::new(ThemeChoice::Light.theme(None));
    let mut menu = view::choice::menu(&shared, &choices, Act::Choose);
    for (at, (value, label)) in choices.iter().enumerate() {
        let mut item = menu.at(at as i32).unwrap_or_else(|| panic!("no item for {label:?}"));
        item.do_callback(&menu);
        assert_eq!(shared.next(), Some(Act::Choose(value.clone())), "{label}");
    }
    assert_eq!(menu.at(2).and_then(|item| item.label()).as_deref(), Some("_php.toml"));
    assert_eq!(menu.at(3).and_then(|item| item.label()).as_deref(), Some("a|b.toml"));
    menu.clear();
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
        Body::Chooser(_) => "chooser",
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
