//! Options of the command line that concern the server.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::words::Language;

/// Options of the program. Without a socket and a configuration, the settings may name a server elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Control socket; `None`: that of `ROCKNET_SOCKET`, of the configuration, or of the system.
    pub socket: Option<PathBuf>,
    /// Configuration of a server that this program starts; `None`: the file of the user.
    pub config: Option<PathBuf>,
    /// The program `rocknet`; `None`: the one beside this program, or on the search path.
    pub program: Option<PathBuf>,
    /// File with the place of a server elsewhere; `None`: the file of the user.
    pub place: Option<PathBuf>,
    /// Search path of the programs that query and instruct the system; `None`: the search path of this process.
    pub search_path: Option<OsString>,
    /// Language of the pages that the program writes: the first page, and start pages.
    pub language: Language,
}
