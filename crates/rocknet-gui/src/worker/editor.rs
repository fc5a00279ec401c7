//! Editor of the user for the folder of a website: the one in `$VISUAL`, or the desktop's program for texts.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;

use super::programs::report_failure;
use crate::home::data_folder;
use crate::job::{Report, Trouble};

/// Editors that need a terminal.
const IN_TERMINAL: [&str; 11] = [
    "vi", "vim", "nvim", "nano", "pico", "micro", "hx", "helix", "kak", "joe", "mcedit",
];

/// Start pages, which an editor that cannot open a folder gets.
const START_PAGES: [&str; 4] = ["index.php", "index.html", "index.htm", "public/index.php"];

/// Program that opens a terminal on Debian, whatever the desktop is.
const TERMINAL: &str = "x-terminal-emulator";

/// Opens a folder in the editor of the user. An editor that ends soon with an error is reported to `late`.
///
/// # Errors
///
/// Returns a message if there is no editor, or if it cannot be started.
pub fn open(folder: &Path, late: Sender<Report>) -> Result<(), Trouble> {
    let visual = std::env::var_os("VISUAL").filter(|value| !value.is_empty());
    let command = match visual {
        Some(visual) => command_of_variable(&visual.to_string_lossy(), folder),
        None => command_of_desktop(&text_editor()?, &start_page(folder)?),
    };
    let (program, arguments) = command.split_first().ok_or(Trouble::NoVisual)?;
    let child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| Trouble::of(Path::new(program), &error))?;
    let name = program.to_string_lossy().into_owned();
    report_failure(child, late, |_| Trouble::CommandFailed(name));
    Ok(())
}

/// Returns the command for a value such as `code --new-window`.
fn command_of_variable(visual: &str, folder: &Path) -> Vec<OsString> {
    let words: Vec<&str> = visual.split_whitespace().collect();
    let name = words.first().and_then(|program| Path::new(program).file_name());
    let needs_terminal =
        name.is_some_and(|name| IN_TERMINAL.iter().any(|editor| name == *editor)) || words.contains(&"-nw");
    let terminal: &[&str] = if needs_terminal { &[TERMINAL, "-e"] } else { &[] };
    if words.is_empty() {
        return Vec::new();
    }
    let words = terminal.iter().chain(&words).map(OsString::from);
    words.chain([folder.as_os_str().to_owned()]).collect()
}

/// Returns the command for the key `Exec` of a desktop entry.
fn command_of_desktop(exec: &str, file: &Path) -> Vec<OsString> {
    let mut command = Vec::new();
    let mut has_file = false;
    for word in exec.split_whitespace() {
        match word.trim_matches('"') {
            "%f" | "%F" | "%u" | "%U" => {
                has_file = true;
                command.push(file.as_os_str().to_owned());
            }
            // Icon, name and the deprecated codes.
            code if code.len() == 2 && code.starts_with('%') => {}
            word => command.push(word.replace("%%", "%").into()),
        }
    }
    if !has_file {
        command.push(file.as_os_str().to_owned());
    }
    command
}

/// Returns the file that a text editor shows: the start page, or the first file of the folder.
fn start_page(folder: &Path) -> Result<PathBuf, Trouble> {
    let start = START_PAGES
        .iter()
        .map(|page| folder.join(page))
        .find(|page| page.is_file());
    let first = || {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_file()).min()
    };
    start.or_else(first).ok_or_else(|| Trouble::NoFile(folder.to_owned()))
}

/// Returns the key `Exec` of the desktop's program for texts.
fn text_editor() -> Result<String, Trouble> {
    let output = Command::new("xdg-mime")
        .args(["query", "default", "text/plain"])
        .stdin(Stdio::null())
        .output()
        .map_err(|_| Trouble::NoEditor)?;
    let entry = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let folders = data_folders();
    let text = folders
        .iter()
        .find_map(|folder| fs::read_to_string(folder.join("applications").join(&entry)).ok());
    let exec = text.as_deref().filter(|_| !entry.is_empty()).and_then(exec_of);
    exec.ok_or(Trouble::NoEditor)
}

/// Returns the key `Exec` in the first group of a desktop entry.
fn exec_of(text: &str) -> Option<String> {
    let group = text.lines().skip_while(|line| *line != "[Desktop Entry]").skip(1);
    let mut keys = group.take_while(|line| !line.starts_with('['));
    keys.find_map(|line| line.strip_prefix("Exec=")).map(str::to_owned)
}

fn data_folders() -> Vec<PathBuf> {
    let system = std::env::var_os("XDG_DATA_DIRS").filter(|value| !value.is_empty());
    let system = system.unwrap_or_else(|| "/usr/local/share:/usr/share".into());
    data_folder()
        .into_iter()
        .chain(std::env::split_paths(&system))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &[OsString]) -> String {
        let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn editors_of_the_variable_get_the_folder() {
        let folder = Path::new("/srv/a b");
        for (visual, expected) in [
            ("code --new-window", "code --new-window /srv/a b"),
            ("/usr/bin/vim", "x-terminal-emulator -e /usr/bin/vim /srv/a b"),
            ("emacs -nw", "x-terminal-emulator -e emacs -nw /srv/a b"),
            ("emacs", "emacs /srv/a b"),
            ("  ", ""),
        ] {
            assert_eq!(words(&command_of_variable(visual, folder)), expected);
        }
    }

    #[test]
    fn editors_of_the_desktop_get_a_file() {
        let file = Path::new("/srv/index.php");
        for (exec, expected) in [
            ("gedit %U", "gedit /srv/index.php"),
            ("/usr/bin/kate -b %i %f", "/usr/bin/kate -b /srv/index.php"),
            ("mousepad", "mousepad /srv/index.php"),
        ] {
            assert_eq!(words(&command_of_desktop(exec, file)), expected);
        }
        let entry =
            "[Other]\nExec=x\n[Desktop Entry]\nName=Editor\nExec=gedit %U\n[Desktop Action new]\nExec=gedit -w\n";
        assert_eq!(exec_of(entry).as_deref(), Some("gedit %U"));
        assert_eq!(exec_of("[Desktop Entry]\nName=x\n[Action]\nExec=y"), None);
    }

    #[test]
    fn the_start_page_is_preferred() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            start_page(folder.path()),
            Err(Trouble::NoFile(folder.path().to_owned()))
        );
        fs::write(folder.path().join("zoo.txt"), "").unwrap();
        fs::write(folder.path().join("about.txt"), "").unwrap();
        assert!(start_page(folder.path()).unwrap().ends_with("about.txt"));
        fs::write(folder.path().join("index.html"), "").unwrap();
        assert!(start_page(folder.path()).unwrap().ends_with("index.html"));
    }
}
