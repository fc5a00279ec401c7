//! Editing by keyboard alone, against the real program and the real server: a website in its form, and the
//! configuration as text. Each test types, sees an error, repairs it and saves.

#[path = "desk/mod.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod desk;
#[path = "display/mod.rs"]
mod display;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use desk::{Keyboard, Running, free_port, get, wait};
use rocknet_control::Client;
use rocknet_control::api::Request;
use rocknet_control::config::Change;
use rocknet_gui::theme::{LIGHT, Rgb};
use rocknet_testing::{Need, skip};

/// Title of the question about an edit by another program.
const CONFLICT: &str = "Another program has edited the same";

/// A server with one website, and the window that shows it.
struct Desk {
    keys: Keyboard,
    config: PathBuf,
    socket: PathBuf,
    port: u16,
    text: String,
    // Processes end before the display and the folder.
    _window: Running,
    _server: Running,
    display: display::Display,
    _folder: tempfile::TempDir,
}

impl Desk {
    /// Starts everything. Returns `None`, and records a skip, if a program is missing.
    fn start() -> Option<Desk> {
        let program = Path::new(env!("CARGO_BIN_EXE_rocknet-gui")).with_file_name("rocknet");
        if !program.is_file() {
            let reason = "the server is not built: cargo build -p rocknet";
            skip(Need::Program("rocknet"), reason);
            return None;
        }
        let display = display::Display::start(&["xdotool", "import"])?;
        let folder = tempfile::tempdir().unwrap();
        for name in ["one", "two", "three"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("index.html"), name).unwrap();
        }
        let port = free_port();
        let config = folder.path().join("rocknet.toml");
        let text = format!(
            "# kept\n[server]\nmode = \"dev\"\nstate = \"state\"\n\n[site.\":{port}\"] # first\nroot = \"one\" # \
             here\npriority = \"low\"\n"
        );
        fs::write(&config, &text).unwrap();
        let server = Command::new(&program)
            .arg("run")
            .arg(&config)
            .env("HOME", folder.path())
            .env_remove("ROCKNET_SOCKET")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Running(server);
        let socket = folder.path().join("state/admin/control.sock");
        wait("the server runs", || Client::connect(&socket).ok());
        let window = desk::window(&display.name, folder.path(), &config).spawn().unwrap();
        let window = Running(window);
        let keys = Keyboard::of_program(&display.name);
        keys.title("Websites – RockNet – Running");
        Some(Desk {
            keys,
            config,
            socket,
            port,
            text,
            _window: window,
            _server: server,
            display,
            _folder: folder,
        })
    }

    fn file(&self) -> String {
        fs::read_to_string(&self.config).unwrap()
    }

    fn wait_for_file(&self, expected: &str) {
        wait(&format!("the file is saved: {expected}"), || {
            (self.file() == expected).then_some(())
        });
    }

    /// Returns the number of pixels that have a colour.
    fn count(&self, rgb: Rgb) -> Option<usize> {
        let picture = Command::new("import")
            .args([
                "-display",
                &self.display.name,
                "-window",
                "root",
                "-depth",
                "8",
                "rgb:-",
            ])
            .output()
            .ok()
            .filter(|picture| !picture.stdout.is_empty())?;
        let pixels = picture.stdout.chunks_exact(3);
        Some(pixels.filter(|pixel| **pixel == [rgb.0, rgb.1, rgb.2]).count())
    }

    /// Waits until the window shows the colour of errors, or does not show it.
    fn wait_for_error(&self, is_shown: bool) {
        wait(&format!("an error is shown: {is_shown}"), || {
            ((self.count(LIGHT.bad)? > 20) == is_shown).then_some(())
        });
    }

    /// Opens the form of the website, and selects the text of the field with the folder.
    fn open_form(&self) {
        self.keys.title("Websites");
        // The list appears after the title, and then has the focus.
        wait("the form opens", || {
            self.keys.press(&["F2"]);
            let title = Keyboard::xdotool(&self.display.name, &["getactivewindow", "getwindowname"])
                .or_else(|| Keyboard::xdotool(&self.display.name, &["getwindowfocus", "getwindowname"]))?;
            title.starts_with("Edit :").then_some(())
        });
        // The name, what it shows, and the folder.
        self.keys.press(&["Tab", "Tab", "ctrl+a"]);
    }
}

#[test]
fn a_website_is_edited_in_its_form() {
    let Some(desk) = Desk::start() else {
        return;
    };
    let keys = &desk.keys;
    let form = format!("Edit :{}", desk.port);
    let with_root = |root: &str| desk.text.replace("\"one\"", &format!("\"{root}\""));

    desk.open_form();
    desk.wait_for_error(false);
    keys.type_text("nowhere");
    // The server checks a field that is left.
    keys.press(&["Tab"]);
    desk.wait_for_error(true);
    assert_eq!(desk.file(), desk.text);
    keys.press(&["shift+Tab", "ctrl+a"]);
    keys.type_text("two");
    keys.press(&["Tab"]);
    desk.wait_for_error(false);
    keys.press(&["ctrl+s"]);
    keys.title("Websites");
    assert_eq!(desk.file(), with_root("two"));
    assert!(get(desk.port).ends_with("two"));

    // An edit by hand of another key is merged, and one of the same key asks.
    desk.open_form();
    keys.type_text("three");
    let by_hand = with_root("two").replace("\"low\"", "\"high\"") + "browse = true\n";
    fs::write(&desk.config, &by_hand).unwrap();
    keys.press(&["ctrl+s"]);
    wait("the edits are merged", || {
        keys.press(&["ctrl+s"]);
        (desk.file() == by_hand.replace("\"two\"", "\"three\"")).then_some(())
    });
    desk.open_form();
    keys.type_text("one");
    fs::write(&desk.config, by_hand.replace("\"two\"", "\"./two\"")).unwrap();
    keys.title(CONFLICT);
    // The differences have the focus, so typing answers nothing. The first answer keeps the input.
    keys.press(&["Return", "space", "shift+Tab", "shift+Tab", "Return"]);
    keys.title(&form);
    keys.press(&["ctrl+s"]);
    desk.wait_for_file(&by_hand.replace("\"two\"", "\"one\""));

    // Esc asks before input is lost, and the second answer discards it.
    desk.open_form();
    keys.type_text("x");
    keys.press(&["Escape"]);
    keys.title("Edit website");
    keys.press(&["Tab", "Return"]);
    keys.title("Websites");
    assert_eq!(desk.file(), by_hand.replace("\"two\"", "\"one\""));
}

#[test]
fn shortcuts_work_in_fields_and_type_nothing() {
    let Some(desk) = Desk::start() else {
        return;
    };
    let keys = &desk.keys;
    keys.press(&["ctrl+f"]);
    keys.type_text("zz");
    keys.press(&["ctrl+l"]);
    keys.title("Logs");
    keys.press(&["ctrl+f", "ctrl+n"]);
    keys.title("Add website");
    let (port, folder) = (free_port(), desk.config.with_file_name("two"));
    keys.type_text(&folder.to_string_lossy());
    keys.press(&["ctrl+j", "Tab", "Tab", "Tab", "ctrl+a"]);
    keys.type_text(&format!(":{port}"));
    keys.press(&["ctrl+m", "ctrl+h"]);
    // Enter of the keypad does nothing until the folder was looked into.
    let expected = format!("[site.\":{port}\"]\nroot = \"{}\"\n", folder.display());
    wait("the website is added", || {
        keys.press(&["KP_Enter"]);
        desk.file().contains(&expected).then_some(())
    });
}

#[test]
fn a_conflict_is_not_answered_by_typing() {
    let Some(desk) = Desk::start() else {
        return;
    };
    let keys = &desk.keys;
    wait("the text opens", || {
        keys.press(&["ctrl+e"]);
        let title = Keyboard::xdotool(&desk.display.name, &["getwindowfocus", "getwindowname"])?;
        title.starts_with("Configuration file").then_some(())
    });
    keys.press(&["ctrl+End"]);
    keys.type_text("# mine ");
    let by_hand = desk.text.clone() + "# by hand\n";
    fs::write(&desk.config, &by_hand).unwrap();
    wait("the edit is noticed", || {
        keys.type_text(" x ");
        keys.press(&["Return"]);
        let title = Keyboard::xdotool(&desk.display.name, &["getwindowfocus", "getwindowname"])?;
        title.starts_with(CONFLICT).then_some(())
    });
    keys.type_text(" and more ");
    keys.press(&["Return", "space", "ctrl+s", "ctrl+l"]);
    // Leaving asks about the input, and then the first question is there again: it was not answered.
    keys.title("Configuration file");
    keys.press(&["Escape"]);
    keys.title(CONFLICT);
    assert_eq!(desk.file(), by_hand);
    // The second answer shows the file.
    keys.press(&["shift+Tab", "Return"]);
    keys.title("Configuration file");
    keys.press(&["ctrl+End"]);
    keys.type_text("# next");
    let expected = by_hand + "# next";
    wait("the text is saved", || {
        keys.press(&["ctrl+s"]);
        (desk.file() == expected).then_some(())
    });
}

#[test]
fn the_configuration_is_edited_as_text() {
    let Some(desk) = Desk::start() else {
        return;
    };
    let keys = &desk.keys;
    wait("the text opens", || {
        keys.press(&["ctrl+e"]);
        let title = Keyboard::xdotool(&desk.display.name, &["getwindowfocus", "getwindowname"])?;
        title.starts_with("Configuration file").then_some(())
    });
    desk.wait_for_error(false);
    keys.press(&["ctrl+End"]);
    keys.type_text("bro");
    // The first proposal is `browse`.
    let before = desk.count(LIGHT.selected).unwrap();
    keys.press(&["ctrl+space"]);
    wait("the proposals are shown", || {
        (desk.count(LIGHT.selected)? > before + 2_000).then_some(())
    });
    keys.press(&["Return"]);
    keys.type_text("maybe");
    desk.wait_for_error(true);
    // A text with an error is refused.
    keys.press(&["ctrl+s"]);
    // The list leads to the line of the error, whose column depends on how much of the line was checked.
    keys.press(&["Home", "Up"]);
    // The edge of the text has another colour while the list has the focus.
    let with_focus = desk.count(LIGHT.edge).unwrap();
    keys.press(&["F6"]);
    wait("the list has the focus", || {
        (desk.count(LIGHT.edge)? > with_focus + 500).then_some(())
    });
    keys.press(&["Return"]);
    wait("the text has the focus", || {
        (desk.count(LIGHT.edge)? < with_focus + 500).then_some(())
    });
    keys.press(&["Home", "shift+End"]);
    keys.type_text("browse = true");
    keys.press(&["Return"]);
    let expected = desk.text.clone() + "browse = true\n";
    wait("the text is saved", || {
        keys.press(&["ctrl+s"]);
        (desk.file() == expected).then_some(())
    });
    let changes: Vec<Change> = Client::connect(&desk.socket)
        .unwrap()
        .call(&Request::ConfigHistory)
        .unwrap();
    assert_eq!(changes.len(), 1, "the refused text has changed nothing");

    // The change is taken back as a whole.
    keys.press(&["Escape"]);
    keys.title("Websites");
    keys.press(&["ctrl+z"]);
    desk.wait_for_file(&desk.text);
}
