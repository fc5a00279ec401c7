//! A server with one website, and the window that shows it, for tests by keyboard.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rocknet_control::Client;
use rocknet_gui::theme::{LIGHT, Rgb};

use crate::desk::{self, Keyboard, Running, free_port, wait};
use crate::display;
use crate::machine;

/// A server with one website, and the window that shows it.
pub struct Desk {
    pub keys: Keyboard,
    pub config: PathBuf,
    pub socket: PathBuf,
    pub port: u16,
    pub text: String,
    // Processes end before the display and the folder.
    _window: Running,
    _server: Running,
    pub display: display::Display,
    _folder: tempfile::TempDir,
}

impl Desk {
    /// Starts everything. Returns `None`, and records a skip, if a program is missing.
    pub fn start() -> Option<Desk> {
        let program = machine::program()?;
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
        let server = Running(machine::start_server(&program, &config));
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

    pub fn file(&self) -> String {
        fs::read_to_string(&self.config).unwrap()
    }

    pub fn wait_for_file(&self, expected: &str) {
        wait(&format!("the file is saved: {expected}"), || {
            (self.file() == expected).then_some(())
        });
    }

    /// Returns the number of pixels that have a colour.
    pub fn count(&self, rgb: Rgb) -> Option<usize> {
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
    pub fn wait_for_error(&self, is_shown: bool) {
        wait(&format!("an error is shown: {is_shown}"), || {
            ((self.count(LIGHT.bad)? > 20) == is_shown).then_some(())
        });
    }

    /// Opens the form of the website, and selects the text of the field with the folder.
    pub fn open_form(&self) {
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

    /// Opens the configuration as text.
    pub fn open_text(&self) {
        wait("the text opens", || {
            self.keys.press(&["ctrl+e"]);
            self.keys.shows("Configuration file").then_some(())
        });
    }
}
