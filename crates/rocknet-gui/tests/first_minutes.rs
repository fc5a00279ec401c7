//! The first minutes of a user, by keyboard alone, against the real program and the real server.

#[path = "desk/mod.rs"]
mod desk;
#[path = "display/mod.rs"]
mod display;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use desk::{Keyboard, Running, StartedServer, free_port, get, wait};
use rocknet_control::api::Request;
use rocknet_control::{Client, SiteSummary};
use rocknet_testing::{Need, skip};

/// Maximum resident memory of the program.
const MAX_MEMORY: u64 = 45 << 20;

fn names(socket: &Path) -> Option<Vec<String>> {
    let sites: Vec<SiteSummary> = Client::connect(socket).ok()?.call(&Request::Sites).ok()?;
    Some(sites.into_iter().map(|site| site.name).collect())
}

#[test]
fn a_website_is_added_and_taken_back_by_keyboard() {
    let program = Path::new(env!("CARGO_BIN_EXE_rocknet-gui")).with_file_name("rocknet");
    if !program.is_file() {
        skip(
            Need::Program("rocknet"),
            "the server is not built: cargo build -p rocknet",
        );
        return;
    }
    let Some(display) = display::Display::start(&["xdotool"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (first, port) = (free_port(), free_port());
    for name in ["first", "shop", "bin"] {
        fs::create_dir(path(name)).unwrap();
    }
    fs::write(path("shop/index.html"), "<h1>The shop</h1>").unwrap();
    let config = path("rocknet.toml");
    fs::write(
        &config,
        format!(
            "# kept\n[server]\nmode = \"dev\"\nstate = \"state\"\n\n[site.\":{first}\"] # first\nroot = \"first\"\n"
        ),
    )
    .unwrap();
    // The browser of this desktop writes the URL to a file.
    let opened = path("opened");
    let browser = path("bin/xdg-open");
    fs::write(&browser, format!("#!/bin/sh\necho \"$1\" >> '{}'\n", opened.display())).unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let search = format!("{}:{}", path("bin").display(), std::env::var("PATH").unwrap());

    let began = Instant::now();
    let window = desk::window(&display.name, folder.path(), &config)
        .arg("--program")
        .arg(&program)
        .env("PATH", search)
        .spawn()
        .unwrap();
    let mut window = Running(window);
    let keys = Keyboard::of_program(&display.name);
    println!("first window after {} ms", began.elapsed().as_millis());

    // The button that starts the server has the focus.
    keys.title("Websites – RockNet – Stopped");
    let socket = path("state/admin/control.sock");
    let _server = StartedServer(socket.clone());
    keys.press(&["Return"]);
    wait("the server runs", || names(&socket));

    keys.title("Websites – RockNet – Running");
    keys.press(&["ctrl+n"]);
    keys.title("Add website");
    keys.type_text(&path("shop").to_string_lossy());
    // The button that chooses a folder, the kind, and the name.
    keys.press(&["Tab", "Tab", "Tab", "ctrl+a"]);
    keys.type_text(&format!(":{port}"));
    let name = format!(":{port}");
    // Enter does nothing until the folder was looked into.
    wait("the website is added", || {
        keys.press(&["Return"]);
        names(&socket)?.contains(&name).then_some(())
    });
    keys.title(&format!("{name} is ready"));
    assert!(get(port).contains("The shop"));
    let url = wait("the browser opens", || {
        fs::read_to_string(&opened).ok().filter(|url| url.ends_with('\n'))
    });
    assert_eq!(url, format!("http://localhost:{port}/\n"));
    let text = fs::read_to_string(&config).unwrap();
    assert!(text.starts_with("# kept\n") && text.contains("# first"), "{text}");

    keys.press(&["ctrl+z"]);
    wait("the website is gone", || {
        (!names(&socket)?.contains(&name)).then_some(())
    });
    keys.title("Websites");
    assert!(path("shop/index.html").exists());

    let status = fs::read_to_string(format!("/proc/{}/status", window.0.id())).unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let memory = memory.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024;
    println!("resident memory: {} MiB", memory >> 20);
    assert!(memory <= MAX_MEMORY, "{memory}");

    keys.press(&["ctrl+q"]);
    let ended = wait("the window closes", || window.0.try_wait().unwrap());
    assert!(ended.success());
    // The websites are served on.
    assert!(names(&socket).is_some());
}
