//! Failures under the window, by keyboard alone, against the real program and the real server: the server is killed,
//! and its configuration is broken.

#[path = "desk/mod.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod desk;
#[path = "display/mod.rs"]
mod display;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use desk::{Keyboard, Running, StartedServer, free_port, get, wait};
use rocknet_control::api::Request;
use rocknet_control::{Client, Status};
use rocknet_testing::{Need, skip};

fn status(socket: &Path) -> Option<Status> {
    Client::connect(socket).ok()?.call(&Request::Status).ok()
}

/// Kills the server, and waits until it has ended.
fn kill(socket: &Path) {
    let pid = status(socket).unwrap().pid.to_string();
    assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    wait("the server has ended", || status(socket).is_none().then_some(()));
}

/// A window whose configuration has one website, before the server is started.
struct Stage {
    keys: Keyboard,
    config: PathBuf,
    socket: PathBuf,
    port: u16,
    text: String,
    // Processes end before the display and the folder.
    _server: StartedServer,
    window: Running,
    _display: display::Display,
    _folder: tempfile::TempDir,
}

impl Stage {
    /// Opens the window. Returns `None`, and records a skip, if a program is missing.
    fn open() -> Option<Stage> {
        let program = Path::new(env!("CARGO_BIN_EXE_rocknet-gui")).with_file_name("rocknet");
        if !program.is_file() {
            let reason = "the server is not built: cargo build -p rocknet";
            skip(Need::Program("rocknet"), reason);
            return None;
        }
        let display = display::Display::start(&["xdotool"])?;
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("www")).unwrap();
        fs::write(folder.path().join("www/index.html"), "still here").unwrap();
        let (config, port) = (folder.path().join("rocknet.toml"), free_port());
        let text = format!("[server]\nmode = \"dev\"\nstate = \"state\"\n\n[site.\":{port}\"]\nroot = \"www\"\n");
        fs::write(&config, &text).unwrap();
        let window = desk::window(&display.name, folder.path(), &config)
            .arg("--program")
            .arg(&program)
            .spawn()
            .unwrap();
        let window = Running(window);
        let keys = Keyboard::of_program(&display.name);
        let socket = folder.path().join("state/admin/control.sock");
        Some(Stage {
            keys,
            config,
            _server: StartedServer(socket.clone()),
            socket,
            port,
            text,
            window,
            _display: display,
            _folder: folder,
        })
    }
}

#[test]
fn an_open_menu_does_not_stop_the_window() {
    let Some(mut stage) = Stage::open() else {
        return;
    };
    let (keys, socket) = (&stage.keys, &stage.socket);
    keys.title("Websites – RockNet – Stopped");
    keys.press(&["Return"]);
    keys.title("Websites – RockNet – Running");
    keys.press(&["ctrl+n"]);
    keys.title("Add website – RockNet – Running");
    // The folder, the button that chooses one, and the choice of the kind.
    keys.press(&["Tab", "Tab", "space"]);
    kill(socket);
    // The form with the menu is replaced once the menu is closed.
    keys.title("Add website – RockNet – Stopped");
    keys.press(&["Escape", "ctrl+comma"]);
    keys.title("Settings – RockNet – Stopped");
    assert!(stage.window.0.try_wait().unwrap().is_none());
}

#[test]
fn a_server_that_was_killed_is_started_again_once_its_configuration_is_valid() {
    let Some(stage) = Stage::open() else {
        return;
    };
    let Stage {
        keys,
        config,
        socket,
        port,
        text,
        ..
    } = &stage;
    // At the start, the button that starts the server has the focus. Later, no key that the user types may press it.
    keys.title("Websites – RockNet – Stopped");
    keys.press(&["Return"]);
    keys.title("Websites – RockNet – Running");

    kill(socket);
    keys.title("Websites – RockNet – Stopped");
    keys.press(&["Return", "space", "F1"]);
    // The window has handled the keys once it shows the list of keys, and it would be starting a server.
    keys.title("Keys – RockNet – Stopped");
    assert!(status(socket).is_none(), "typing starts no server");
    keys.press(&["Escape"]);
    keys.title("Websites – RockNet – Stopped");
    keys.press(&["Return"]);
    keys.title("Websites – RockNet – Running");
    assert!(get(*port).contains("still here"));

    // With an error in its configuration, the server does not start, and the repaired one starts.
    fs::write(config, format!("{text}rot = 1\n")).unwrap();
    kill(socket);
    keys.title("Websites – RockNet – Stopped");
    keys.press(&["Tab", "Return"]);
    keys.title("Websites – RockNet – Not started");
    assert!(status(socket).is_none());
    fs::write(config, text).unwrap();
    keys.press(&["Return"]);
    keys.title("Websites – RockNet – Running");
    assert!(get(*port).contains("still here"));
}
