//! Failures of this program, which the model words in the language of the user.

use std::path::{Path, PathBuf};

use super::FolderTrouble;

/// Failure of a job. Only texts of other programs are texts already.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Trouble {
    /// The program `rocknet` was not found.
    #[default]
    NoProgram,
    /// Message of the server, of the operating system, or of another program, as it is.
    Text(String),
    /// There is no home folder, so the files of the user have no place.
    NoHome,
    /// The server that was started does not reply.
    NoReply,
    /// The program has ended without a message.
    ProgramEnded,
    /// The server was started elsewhere, with another configuration.
    OtherConfig,
    /// A URL, a folder or a file cannot be opened, with the error.
    NotOpened(String, String),
    /// The program that opens URLs, folders and files has failed for this one, with this exit code.
    OpenerFailed(String, i32),
    /// The unit has not started, and another program holds this port of its configuration.
    PortHeld(u16),
    /// There is no editor for texts.
    NoEditor,
    /// `$VISUAL` names no program.
    NoVisual,
    /// The folder has no file that an editor could open.
    NoFile(PathBuf),
    /// A start page cannot be created, or an editor cannot be opened, because of the folder.
    Folder(PathBuf, FolderTrouble),
    /// The website has no address that this computer can request.
    NoAddress,
    /// The response of the website is not one of HTTP/1.1.
    NotHttp,
    /// A command has failed without a message.
    CommandFailed(String),
}

impl Trouble {
    /// Returns the failure of an operation with a file, or of a program that cannot be started.
    pub fn of(file: &Path, error: &std::io::Error) -> Trouble {
        Trouble::Text(format!("{}: {error}", file.display()))
    }

    /// Returns the message of another program; an empty text for another failure.
    pub fn message(&self) -> &str {
        match self {
            Trouble::Text(text) => text,
            _ => "",
        }
    }
}

impl From<String> for Trouble {
    fn from(text: String) -> Trouble {
        Trouble::Text(text)
    }
}
