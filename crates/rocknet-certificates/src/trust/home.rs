//! Home folder of the user whose browser stores are changed: the caller of `sudo`, or else the user of this process.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::Tools;

/// A home folder.
#[derive(Debug, Clone)]
pub struct Home(PathBuf);

impl Home {
    /// Finds the home folder; `None` for users without one, such as service accounts.
    pub fn of_user(tools: &Tools) -> Option<Home> {
        let home = match tools.sudo_user() {
            Some(user) => in_passwd(&fs::read_to_string("/etc/passwd").ok()?, user)?,
            None => PathBuf::from(env::var_os("HOME").filter(|home| !home.is_empty())?),
        };
        Some(Home(home))
    }

    /// Uses the folder at this path as the home folder.
    pub fn at(path: impl Into<PathBuf>) -> Home {
        Home(path.into())
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Returns the home folder of a user: the sixth field of a line `name:password:uid:gid:comment:home:shell`. Returns
/// `None` if there is no such user, or if the field is not an absolute path.
fn in_passwd(table: &str, user: &str) -> Option<PathBuf> {
    let line = table.lines().find(|line| line.split(':').next() == Some(user))?;
    line.split(':')
        .nth(5)
        .filter(|home| home.starts_with('/'))
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_found_by_name() {
        let table = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000:Ann,,,:/home/ann:/bin/sh\nbad:x:1\n";
        for (user, home) in [
            ("ann", Some("/home/ann")),
            ("an", None),
            ("bad", None),
            ("root", Some("/root")),
        ] {
            assert_eq!(in_passwd(table, user).as_deref(), home.map(Path::new), "{user}");
        }
    }
}
