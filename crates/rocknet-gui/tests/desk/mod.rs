//! The program and a server for tests by keyboard: processes that end with the test, and keys that are typed.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_control::Client;
use rocknet_control::api::{Done, Request};

/// Maximum wait for anything. A debug build on a busy machine is slow.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until `done` returns a value, and panics with `what` after [`TIMEOUT`].
pub fn wait<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(Instant::now() < deadline, "timeout: {what}");
        thread::park_timeout(Duration::from_millis(20));
    }
}

/// Returns the command that starts the window on a display, with an account whose home folder is `home`.
pub fn window(display: &str, home: &Path, config: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocknet-gui"));
    command
        .arg("--config")
        .arg(config)
        .env("DISPLAY", display)
        .env("HOME", home)
        .env("LC_ALL", "C")
        .env_remove("ROCKNET_SOCKET")
        .env_remove("XDG_CONFIG_HOME");
    command
}

/// A program that is killed if the test fails.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server that the window has started. It goes on when the window is closed, so the test stops it.
pub struct StartedServer(pub PathBuf);

impl Drop for StartedServer {
    fn drop(&mut self) {
        if let Ok(mut client) = Client::connect(&self.0) {
            let _ = client.call::<Done>(&Request::Stop);
            let deadline = Instant::now() + TIMEOUT;
            while Client::connect(&self.0).is_ok() && Instant::now() < deadline {
                thread::park_timeout(Duration::from_millis(20));
            }
        }
    }
}

pub struct Keyboard {
    display: String,
    window: String,
}

impl Keyboard {
    pub fn xdotool(display: &str, arguments: &[&str]) -> Option<String> {
        let output = Command::new("xdotool")
            .env("DISPLAY", display)
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    }

    /// Waits for the window of the program.
    pub fn of_program(display: &str) -> Keyboard {
        let window = wait("the window appears", || {
            let found = Keyboard::xdotool(display, &["search", "--onlyvisible", "--name", "RockNet"])?;
            found
                .lines()
                .next()
                .map(str::to_owned)
                .filter(|window| !window.is_empty())
        });
        let keyboard = Keyboard {
            display: display.to_owned(),
            window,
        };
        keyboard.run(&["windowfocus", "--sync", &keyboard.window]);
        keyboard
    }

    fn run(&self, arguments: &[&str]) {
        assert!(
            Keyboard::xdotool(&self.display, arguments).is_some(),
            "xdotool {arguments:?}"
        );
    }

    pub fn press(&self, keys: &[&str]) {
        self.run(&[&["key", "--clearmodifiers"], keys].concat());
    }

    pub fn type_text(&self, text: &str) {
        self.run(&["type", "--delay", "8", text]);
    }

    /// Returns true if the title of the window begins with a text.
    #[allow(dead_code, reason = "each test uses a part of it")]
    pub fn shows(&self, beginning: &str) -> bool {
        let title = Keyboard::xdotool(&self.display, &["getwindowname", &self.window]);
        title.is_some_and(|title| title.starts_with(beginning))
    }

    /// Waits until the title of the window begins with a text.
    pub fn title(&self, beginning: &str) {
        wait(&format!("the page {beginning:?}"), || {
            let title = Keyboard::xdotool(&self.display, &["getwindowname", &self.window])?;
            title.starts_with(beginning).then_some(())
        });
    }
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

pub fn get(port: u16) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}
