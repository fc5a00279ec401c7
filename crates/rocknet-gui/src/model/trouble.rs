//! Words for failures of the worker.

use crate::job::{FolderTrouble, Trouble};
use crate::words::{Words, fill};

/// Returns the message about a failure.
pub fn trouble_text(words: &Words, trouble: &Trouble) -> String {
    match trouble {
        Trouble::Text(text) => text.clone(),
        Trouble::NoProgram => words.no_program_text.to_owned(),
        Trouble::NoHome => words.no_home.to_owned(),
        Trouble::NoReply => words.start_no_reply.to_owned(),
        Trouble::ProgramEnded => words.program_ended.to_owned(),
        Trouble::OtherConfig => words.other_config.to_owned(),
        Trouble::NotOpened(target, error) => fill(words.not_opened, &[target, error]),
        Trouble::OpenerFailed(target, code) => fill(words.opener_failed, &[target, &code.to_string()]),
        Trouble::PortHeld(port) => fill(words.port_held, &[&port.to_string()]),
        Trouble::NoEditor => words.no_editor.to_owned(),
        Trouble::NoVisual => words.no_visual.to_owned(),
        Trouble::NoFile(folder) => fill(words.no_file, &[&folder.to_string_lossy()]),
        Trouble::Folder(folder, trouble) => {
            format!("{}: {}", folder.display(), folder_trouble_text(words, trouble))
        }
        Trouble::NoAddress => words.no_address.to_owned(),
        Trouble::NotHttp => words.not_http.to_owned(),
        Trouble::CommandFailed(command) => fill(words.command_failed, &[command]),
    }
}

/// Returns the message about a folder that cannot be listed or created, or is not yet.
pub fn folder_trouble_text(words: &Words, trouble: &FolderTrouble) -> String {
    match trouble {
        FolderTrouble::Missing => words.not_a_folder.to_owned(),
        FolderTrouble::Denied => words.folder_denied.to_owned(),
        FolderTrouble::Exists => words.folder_exists.to_owned(),
        FolderTrouble::Waiting => words.folder_waits.to_owned(),
        FolderTrouble::NotTried => words.folder_not_tried.to_owned(),
        FolderTrouble::Crashed => words.folder_crashed.to_owned(),
        FolderTrouble::Other(error) => error.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;
    use std::fs;
    use std::path::Path;

    #[test]
    fn every_failure_has_words_with_its_details() {
        let troubles = [
            Trouble::NoProgram,
            Trouble::Text("x".to_owned()),
            Trouble::NoHome,
            Trouble::NoReply,
            Trouble::ProgramEnded,
            Trouble::OtherConfig,
            Trouble::NotOpened("x".to_owned(), "y".to_owned()),
            Trouble::OpenerFailed("x".to_owned(), 3),
            Trouble::PortHeld(80),
            Trouble::NoEditor,
            Trouble::NoVisual,
            Trouble::NoFile("/x".into()),
            Trouble::Folder("/x".into(), FolderTrouble::Waiting),
            Trouble::Folder("/x".into(), FolderTrouble::NotTried),
            Trouble::Folder("/x".into(), FolderTrouble::Crashed),
            Trouble::NoAddress,
            Trouble::NotHttp,
            Trouble::CommandFailed("x".to_owned()),
        ];
        for language in Language::ALL {
            for trouble in &troubles {
                let text = trouble_text(language.words(), trouble);
                assert!(!text.is_empty() && !text.contains('{'), "{trouble:?}: {text}");
            }
        }
    }

    /// Returns the lines of the worker, without tests, that make an error of a sentence in English.
    fn sentences(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                sentences(&path, found);
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") && !name.starts_with("fake_") {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
                found.extend(
                    code.filter(|line| makes_sentence(line))
                        .map(|line| format!("{name}: {line}")),
                );
            }
        }
    }

    fn makes_sentence(line: &str) -> bool {
        let makers = [
            "Err(",
            "ok_or(",
            "ok_or_else(||",
            "unwrap_or(",
            "reason: ",
            "Failed(",
            "map_err(|error|",
            "map_err(|_|",
        ];
        let mut parts = line.split('"');
        let before = parts.next().unwrap_or_default();
        let is_made = makers.iter().any(|maker| before.contains(maker));
        // Two words of letters are a sentence; a command or a path is not.
        let is_word = |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase());
        let literals = parts.step_by(2);
        is_made
            && literals
                .into_iter()
                .any(|text| text.split(' ').filter(is_word).count() > 1)
    }

    #[test]
    fn the_worker_makes_no_sentences() {
        assert!(makes_sentence(r#"    let x = y.ok_or("there is no home folder")?;"#));
        assert!(!makes_sentence(
            r#"    .map_err(|error| format!("{}: {error}", path.display()))"#
        ));
        let mut found = Vec::new();
        sentences(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/worker"), &mut found);
        // Commands, and an error that ends a thread.
        let allowed = ["sudo systemctl", "CommandFailed", "ClientError::Invalid"];
        found.retain(|line| !allowed.iter().any(|part| line.contains(part)));
        assert_eq!(found, Vec::<String>::new());
    }
}
