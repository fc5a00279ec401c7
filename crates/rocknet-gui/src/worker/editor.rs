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
    // A missing folder would be reported as a missing program.
    folder.read_dir().map_err(|error| Trouble::of(folder, &error))?;
    let visual = std::env::var_os("VISUAL").filter(|value| !value.is_empty());
    let command = match visual {
        Some(visual) => command_of_variable(&visual.to_string_lossy(), folder),
        None => text_editor()?.command(&start_page(folder)?),
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
    let words = words_of(visual);
    let name = words.first().and_then(|program| Path::new(program).file_name());
    let needs_terminal = name.is_some_and(|name| IN_TERMINAL.iter().any(|editor| name == *editor))
        // Option of Emacs: no window.
        || words.iter().any(|word| word == "-nw");
    if words.is_empty() {
        return Vec::new();
    }
    let words = terminal(needs_terminal)
        .into_iter()
        .chain(words.into_iter().map(OsString::from));
    words.chain([folder.as_os_str().to_owned()]).collect()
}

/// Returns the beginning of a command that runs in a terminal.
fn terminal(is_needed: bool) -> Vec<OsString> {
    match is_needed {
        true => vec![TERMINAL.into(), "-e".into()],
        false => Vec::new(),
    }
}

/// Splits a command into its words. A word in quotes may have spaces, and a backslash in it escapes the next character.
fn words_of(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            '\\' if is_quoted => word.get_or_insert_default().extend(characters.next()),
            space if space.is_whitespace() && !is_quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// Keys of a desktop entry that start a program.
#[derive(Debug, Default, PartialEq, Eq)]
struct DesktopEntry {
    exec: String,
    needs_terminal: bool,
}

impl DesktopEntry {
    /// Reads the keys in the first group of a desktop entry; `None` without a command.
    fn parse(text: &str) -> Option<DesktopEntry> {
        let group = text.lines().skip_while(|line| *line != "[Desktop Entry]").skip(1);
        let keys: Vec<&str> = group.take_while(|line| !line.starts_with('[')).collect();
        let value = |key: &str| {
            let values = keys.iter().filter_map(|line| line.split_once('='));
            values
                .into_iter()
                .find_map(|(name, value)| (name.trim_end() == key).then_some(value.trim_start()))
        };
        Some(DesktopEntry {
            // The value is a string, in which a backslash is escaped itself.
            exec: value("Exec")?.replace("\\\\", "\\"),
            needs_terminal: value("Terminal").is_some_and(|value| value.trim_end() == "true"),
        })
    }

    /// Returns the command that opens a file.
    fn command(&self, file: &Path) -> Vec<OsString> {
        let mut command = terminal(self.needs_terminal);
        let mut has_file = false;
        for word in words_of(&self.exec) {
            match word.as_str() {
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
}

/// Returns the file that a text editor shows: the start page, or the first file of the folder. Hidden files, such as
/// `.htaccess`, are no start.
fn start_page(folder: &Path) -> Result<PathBuf, Trouble> {
    let start = START_PAGES
        .iter()
        .map(|page| folder.join(page))
        .find(|page| page.is_file());
    let first = || {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let is_hidden = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
        let shown = entries.filter(|entry| !is_hidden(entry)).map(|entry| entry.path());
        shown.filter(|path| path.is_file()).min()
    };
    start.or_else(first).ok_or_else(|| Trouble::NoFile(folder.to_owned()))
}

/// Returns the entry of the desktop's program for texts.
fn text_editor() -> Result<DesktopEntry, Trouble> {
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
    let entry = text.as_deref().filter(|_| !entry.is_empty());
    entry.and_then(DesktopEntry::parse).ok_or(Trouble::NoEditor)
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
            ("\"/opt/My Editor/x\" -n", "/opt/My Editor/x -n /srv/a b"),
            ("  ", ""),
        ] {
            assert_eq!(words(&command_of_variable(visual, folder)), expected);
        }
    }

    #[test]
    fn editors_of_the_desktop_get_a_file() {
        let file = Path::new("/srv/index.php");
        for (exec, expected) in [
            ("gedit %U", &["gedit", "/srv/index.php"][..]),
            ("/usr/bin/kate -b %i %f", &["/usr/bin/kate", "-b", "/srv/index.php"]),
            ("mousepad", &["mousepad", "/srv/index.php"]),
            ("\"/opt/My Editor/x\" %F", &["/opt/My Editor/x", "/srv/index.php"]),
            (
                "sh -c \"a \\\\\"b\\\\\" %%\" \"\"",
                &["sh", "-c", "a \"b\" %", "", "/srv/index.php"],
            ),
        ] {
            let entry = DesktopEntry::parse(&format!("[Desktop Entry]\nExec={exec}\n")).unwrap();
            assert_eq!(entry.command(file), expected, "{exec}");
        }
        let entry = DesktopEntry::parse(
            "[Other]\nExec=x\n[Desktop Entry]\nName=Vim\nExec=vim %F\nTerminal=true\n[Desktop Action \
             new]\nExec=vim -w\n",
        );
        let command = entry.unwrap().command(file);
        assert_eq!(command, ["x-terminal-emulator", "-e", "vim", "/srv/index.php"]);
        assert_eq!(DesktopEntry::parse("[Desktop Entry]\nName=x\n[Action]\nExec=y"), None);
    }

    #[test]
    fn a_missing_folder_is_not_an_error_of_the_editor() {
        let folder = tempfile::tempdir().unwrap().path().join("gone");
        let missing = open(&folder, std::sync::mpsc::channel().0).unwrap_err();
        assert!(missing.message().starts_with(&*folder.to_string_lossy()), "{missing:?}");
    }

    #[test]
    fn the_start_page_is_preferred() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            start_page(folder.path()),
            Err(Trouble::NoFile(folder.path().to_owned()))
        );
        fs::write(folder.path().join(".htaccess"), "").unwrap();
        assert!(start_page(folder.path()).is_err());
        fs::write(folder.path().join("zoo.txt"), "").unwrap();
        fs::write(folder.path().join("about.txt"), "").unwrap();
        assert!(start_page(folder.path()).unwrap().ends_with("about.txt"));
        fs::write(folder.path().join("index.html"), "").unwrap();
        assert!(start_page(folder.path()).unwrap().ends_with("index.html"));
    }
}
