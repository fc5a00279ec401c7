//! `rocknet import`: translates a configuration of nginx, Apache or Caddy.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use rocknet_config::environment::ProcessEnvironment;
use rocknet_import::{Import, ImportError, Language, NoteKind};

use super::{ExitStatus, Failure, print, print_details, search};

/// Translate a configuration of nginx, Apache or Caddy to TOML
///
/// The translation is printed on standard output: redirect it to a file, and run rocknet check on it. Standard error
/// lists each directive that was not translated, that works differently in RockNet, or that RockNet does not need.
/// Included files are read too. The exit code is 1 if the file cannot be read or parsed, or if nothing was translated.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Server that the configuration is for
    pub from: ImportSource,
    /// Configuration: nginx.conf, a file of sites-available, an .htaccess, or a Caddyfile
    pub file: PathBuf,
    /// Print the translation and the list as JSON, for programs
    #[arg(long)]
    pub json: bool,
}

/// Server that a configuration is for.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum ImportSource {
    Nginx,
    Apache,
    Caddy,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let language = match options.from {
        ImportSource::Nginx => Language::Nginx,
        ImportSource::Apache => Language::Apache,
        ImportSource::Caddy => Language::Caddy,
    };
    let shown = options.file.display().to_string();
    let translated = rocknet_import::import_file(language, &path(&options.file), &ProcessEnvironment)
        .map_err(|error| failure(&error))?;
    if options.json {
        print(format_args!("{:#}\n", json(&translated)));
    } else {
        print(&translated.toml);
        print_details(&list(&translated));
    }
    if translated.settings == 0 {
        if !options.json {
            return Err(Failure::Failed(format!("{shown}: nothing was translated")));
        }
        return Err(Failure::Reported(ExitStatus::Failed));
    }
    Ok(())
}

/// Returns the path used to read a file and to name it in the comments of the translation. The path of an `.htaccess`
/// is absolute, because its folder becomes the value of `root`.
fn path(file: &Path) -> PathBuf {
    let is_htaccess = file.file_name().is_some_and(|name| name == ".htaccess");
    if is_htaccess {
        search::absolute(file)
    } else {
        file.to_path_buf()
    }
}

fn failure(error: &ImportError) -> Failure {
    let file = &error.file;
    Failure::Failed(match error.line {
        Some(line) => format!("{file}:{line}: {error}"),
        None => format!("{file}: {error}"),
    })
}

/// Returns a line for each note, and a last line with the number of notes of each kind.
fn list(translated: &Import) -> String {
    let mut text = String::new();
    for note in &translated.notes {
        let (file, line, label) = (&note.file, note.line, note.kind.label());
        let _ = writeln!(text, "{file}:{line}: {label}: {}: {}", note.directive, note.message);
    }
    let count = |kind: NoteKind| translated.notes.iter().filter(|note| note.kind == kind).count();
    // The last number counts directives that restrict access: without them, RockNet admits more requests.
    let _ = writeln!(
        text,
        "{} settings written; directives: {} not translated, {} differ, {} not needed; {} restrict access",
        translated.settings,
        count(NoteKind::NotTranslated),
        count(NoteKind::Differs),
        count(NoteKind::NotNeeded),
        translated.notes.iter().filter(|note| note.weakens_access()).count(),
    );
    text
}

fn json(translated: &Import) -> serde_json::Value {
    let notes: Vec<_> = translated
        .notes
        .iter()
        .map(|note| {
            serde_json::json!({
                "file": note.file,
                "line": note.line,
                "kind": note.kind.label().replace(' ', "-"),
                "directive": note.directive,
                "message": note.message,
                "restricts_access": note.weakens_access(),
            })
        })
        .collect();
    serde_json::json!({ "toml": translated.toml, "settings": translated.settings, "notes": notes })
}
