//! Files of an installed service: paths below the root of a system, and contents.

use std::path::{Path, PathBuf};

/// Name of the unit.
pub const UNIT_NAME: &str = "rocknet.service";

/// Definition of the account, for `systemd-sysusers`.
pub const ACCOUNT: &str = include_str!("../../../../../packaging/rocknet.sysusers");

/// Configuration of a new installation.
pub const CONFIGURATION: &str = include_str!("../../../../../packaging/rocknet.toml");

/// First page of a new installation.
pub const PAGE: &str = include_str!("../../../../../packaging/index.html");

/// The unit, as packages install it.
const UNIT: &str = include_str!("../../../../../packaging/rocknet.service");

/// Path of the program in packages, which the unit names.
const PACKAGED_PROGRAM: &str = "/usr/bin/rocknet";

/// Path of the program without a package.
const PROGRAM: &str = "/usr/local/bin/rocknet";

/// Paths that belong to the server if it may change its configuration: the folder, in which it writes new files, and
/// the file.
pub const CONFIGURATION_PATHS: [&str; 2] = ["/etc/rocknet", "/etc/rocknet/rocknet.toml"];

/// Folders for units of packages.
const PACKAGED_UNITS: [&str; 2] = ["usr/lib/systemd/system", "lib/systemd/system"];

/// Paths of the files below a root.
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Returns the paths below `root`; without it, the paths of this system.
    pub fn new(root: Option<&Path>) -> Layout {
        Layout {
            root: root.unwrap_or(Path::new("/")).to_path_buf(),
        }
    }

    /// Returns true if the files are those of the system that runs this program.
    pub fn is_this_system(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Returns the path of the unit.
    pub fn unit(&self) -> PathBuf {
        self.root.join("etc/systemd/system").join(UNIT_NAME)
    }

    /// Returns the link that starts the unit at boot, and the target of the link as the installed system sees it.
    pub fn start_link(&self) -> (PathBuf, PathBuf) {
        let link = self
            .root
            .join("etc/systemd/system/multi-user.target.wants")
            .join(UNIT_NAME);
        (link, Path::new("/etc/systemd/system").join(UNIT_NAME))
    }

    /// Returns the path of the manual page.
    pub fn man_page(&self) -> PathBuf {
        self.root.join("usr/local/share/man/man1/rocknet.1")
    }

    /// Returns the text of the unit, with the path of a program that no package has installed.
    pub fn unit_text(&self) -> String {
        UNIT.replace(PACKAGED_PROGRAM, PROGRAM)
    }

    /// Returns the path of the unit that a package has installed, if there is one.
    pub fn packaged_unit(&self) -> Option<PathBuf> {
        PACKAGED_UNITS
            .iter()
            .map(|folder| self.root.join(folder).join(UNIT_NAME))
            .find(|unit| unit.exists())
    }

    /// Returns the path of the installed program.
    pub fn program(&self) -> PathBuf {
        self.below(PROGRAM)
    }

    /// Returns the path of a file of the system, which begins with `/`, below the root.
    fn below(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Returns true if `file` is the installed program.
    pub fn is_program(&self, file: &Path) -> bool {
        let resolved = |path: &Path| path.canonicalize().ok();
        resolved(file).is_some_and(|file| resolved(&self.program()) == Some(file))
    }

    /// Returns the path of the `systemd-sysusers` file that defines the account of the server.
    pub fn account(&self) -> PathBuf {
        self.root.join("etc/sysusers.d/rocknet.conf")
    }

    /// Returns the path of the configuration file.
    pub fn configuration(&self) -> PathBuf {
        self.below(CONFIGURATION_PATHS[1])
    }

    /// Returns the folder of the configuration.
    pub fn configuration_folder(&self) -> PathBuf {
        self.below(CONFIGURATION_PATHS[0])
    }

    /// Returns the folder that the configuration of a new installation serves.
    pub fn site(&self) -> PathBuf {
        self.root.join("var/www/html")
    }

    /// Returns the existing paths that stay after the service has been removed, each with a description.
    pub fn kept(&self) -> Vec<(PathBuf, &'static str)> {
        let all = [
            (PROGRAM, "the program"),
            ("/etc/rocknet", "configuration"),
            ("/etc/systemd/system/rocknet.service.d", "changes of the unit"),
            ("/var/lib/rocknet", "state: certificates and keys"),
            ("/var/log/rocknet", "logs"),
        ];
        all.into_iter()
            .map(|(path, what)| (self.below(path), what))
            .filter(|(path, _)| path.exists())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_link_is_in_the_folder_of_the_target_that_the_unit_names() {
        let (_, install) = UNIT.split_once("\n[Install]\n").unwrap();
        let target = install.trim().strip_prefix("WantedBy=").unwrap();
        let (link, _) = Layout::new(None).start_link();
        assert!(link.ends_with(format!("{target}.wants/{UNIT_NAME}")), "{link:?}");
    }

    #[test]
    fn the_unit_starts_the_copied_program() {
        let unit = Layout::new(None).unit_text();
        assert!(unit.contains("\nExecStart=/usr/local/bin/rocknet run "), "{unit}");
        assert!(!unit.contains(PACKAGED_PROGRAM), "{unit}");
    }
}
