//! Trust stores of NSS, which Chromium and Firefox use on Linux: databases in folders below the user's home.

use std::fs;
use std::path::{Path, PathBuf};

use super::command::RunAs;
use super::{Home, RootCertificate, Tools, TrustError, TrustState, TrustStore};

/// The NSS database of one browser or profile.
pub struct Nss {
    /// Browser that uses the database: "Chromium" or "Firefox".
    reader: &'static str,
    folder: PathBuf,
    tools: Tools,
}

/// Database folders of Chromium and its derivatives, by kind of installation.
const CHROMIUM: [&str; 3] = [
    ".pki/nssdb",
    "snap/chromium/current/.pki/nssdb",
    ".var/app/org.chromium.Chromium/data/pki/nssdb",
];

/// Folders with Firefox profiles, each of which is a database.
const FIREFOX: [&str; 4] = [
    ".mozilla/firefox",
    ".config/mozilla/firefox",
    "snap/firefox/common/.mozilla/firefox",
    ".var/app/org.mozilla.firefox/.mozilla/firefox",
];

/// Browsers that use the first folder of [`CHROMIUM`] and create it on first use.
const BROWSERS: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "brave-browser",
    "microsoft-edge",
];

impl Nss {
    /// Finds the databases of all browsers below a home folder.
    pub fn find_all(home: &Home, tools: &Tools) -> Vec<Nss> {
        let store = |reader, folder| Nss {
            reader,
            folder,
            tools: tools.clone(),
        };
        let is_database = |folder: &PathBuf| folder.join("cert9.db").is_file();
        let installed = BROWSERS.iter().any(|browser| tools.find(browser).is_some());
        let mut all = Vec::new();
        for (number, path) in CHROMIUM.iter().enumerate() {
            let folder = home.path().join(path);
            // A browser that was never started has no database yet. It will use the database that `install` creates.
            if is_database(&folder) || number == 0 && installed {
                all.push(store("Chromium", folder));
            }
        }
        for path in FIREFOX {
            let entries = fs::read_dir(home.path().join(path)).into_iter().flatten().flatten();
            let mut profiles: Vec<_> = entries.map(|entry| entry.path()).filter(is_database).collect();
            profiles.sort();
            profiles.truncate(MAX_PROFILES);
            all.extend(profiles.into_iter().map(|folder| store("Firefox", folder)));
        }
        all
    }

    /// Runs `certutil` on the database. `-f /dev/null` supplies an empty password in place of a prompt, so a database
    /// with a password is not opened.
    fn certutil(&self, arguments: &[&str]) -> Result<Vec<u8>, TrustError> {
        if self.tools.find("certutil").is_none() {
            let help = "certutil is missing: install libnss3-tools (Debian, Ubuntu), nss-tools (Fedora) or nss (Arch)";
            return Err(TrustError(help.to_owned()));
        }
        let database = format!("sql:{}", self.folder.display());
        let mut all = vec!["-d", &database, "-f", "/dev/null"];
        all.extend(arguments);
        self.tools
            .run(RunAs::User, "certutil", &all)
            .map(|output| output.stdout)
    }

    fn create_database(&self) -> Result<(), TrustError> {
        if !self.folder.join("cert9.db").is_file() {
            self.tools.run(
                RunAs::User,
                "mkdir",
                &["-p", "-m", "700", &self.folder.to_string_lossy()],
            )?;
            self.certutil(&["-N", "--empty-password"])?;
        }
        Ok(())
    }

    /// Returns true if the certificate stored under the root's name is this root.
    fn contains(&self, root: &RootCertificate) -> bool {
        // `-r` prints the certificate in DER.
        self.certutil(&["-L", "-n", &root.name, "-r"])
            .is_ok_and(|der| der == root.der.as_ref())
    }
}

impl TrustStore for Nss {
    fn reader(&self) -> &'static str {
        self.reader
    }

    fn path(&self) -> &Path {
        &self.folder
    }

    fn state(&self, root: &RootCertificate) -> TrustState {
        if !self.folder.join("cert9.db").is_file() {
            return TrustState::NotTrusted;
        }
        match self.certutil(&["-L"]) {
            Err(TrustError(why)) => TrustState::Unknown(why),
            Ok(listing) => {
                let listing = String::from_utf8_lossy(&listing);
                if flags(&listing, &root.name).is_some_and(trusts_servers) && self.contains(root) {
                    TrustState::Trusted
                } else {
                    TrustState::NotTrusted
                }
            }
        }
    }

    fn install(&self, root: &RootCertificate) -> Result<(), TrustError> {
        self.create_database()?;
        // A certificate with the same name may exist without being trusted.
        self.remove(root)?;
        self.certutil(&["-A", "-t", "C,,", "-n", &root.name, "-i", &root.file.to_string_lossy()])
            .map(drop)
    }

    fn remove(&self, root: &RootCertificate) -> Result<(), TrustError> {
        if !self.folder.join("cert9.db").is_file() {
            return Ok(());
        }
        let listing = self.certutil(&["-L"])?;
        match flags(&String::from_utf8_lossy(&listing), &root.name) {
            Some(_) => self.certutil(&["-D", "-n", &root.name]).map(drop),
            None => Ok(()),
        }
    }
}

/// Returns the trust flags of a certificate in the output of `certutil -L`: each line has a name and three groups of
/// flags, for TLS, mail and code signing. Returns `None` if no line has the name.
fn flags<'l>(listing: &'l str, name: &str) -> Option<&'l str> {
    listing.lines().find_map(|line| {
        let (own, flags) = line.trim_end().rsplit_once(char::is_whitespace)?;
        (own.trim_end() == name).then_some(flags)
    })
}

/// Returns true if the TLS flags contain `C`, which marks a CA trusted to issue server certificates.
fn trusts_servers(flags: &str) -> bool {
    flags.split(',').next().is_some_and(|tls| tls.contains('C'))
}

/// Maximum number of Firefox profiles that are checked; users have a few.
const MAX_PROFILES: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_show_the_trust_of_servers() {
        let listing = "\nCertificate Nickname                                         Trust Attributes\n\
                       \x20                                                            SSL,S/MIME,JAR/XPI\n\n\
                       RockNet local CA 01                                          C,,  \n\
                       RockNet local CA 02                                          ,,   \n\
                       RockNet local CA                                             p,C,C\n";
        for (name, expected) in [
            ("RockNet local CA 01", Some(true)),
            ("RockNet local CA 02", Some(false)),
            ("RockNet local CA", Some(false)),
            ("RockNet", None),
        ] {
            assert_eq!(flags(listing, name).map(trusts_servers), expected, "{name}");
        }
    }
}
