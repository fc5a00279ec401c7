//! The system's trust store: a folder of root certificates, a command that combines them, and the resulting bundle.

use std::fs;
use std::path::{Path, PathBuf};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::command::RunAs;
use super::{RootCertificate, Tools, TrustError, TrustState, TrustStore};

/// Locations and commands of a family of Linux distributions.
struct Family {
    /// Folder for the operator's own root certificates.
    anchors: &'static str,
    /// File name extension that the command requires.
    ending: &'static str,
    /// Command and arguments that rebuild the bundle.
    command: &'static [&'static str],
    /// Bundle that the command writes and OpenSSL reads.
    bundle: &'static str,
}

/// The known families. The first family whose folder and command exist is used. Debian and SUSE use the same command,
/// so their folders distinguish them.
const FAMILIES: [Family; 4] = [
    // Debian and its derivatives.
    Family {
        anchors: "usr/local/share/ca-certificates",
        ending: "crt",
        command: &["update-ca-certificates"],
        bundle: "etc/ssl/certs/ca-certificates.crt",
    },
    // Fedora and Red Hat.
    Family {
        anchors: "etc/pki/ca-trust/source/anchors",
        ending: "pem",
        command: &["update-ca-trust", "extract"],
        bundle: "etc/pki/tls/certs/ca-bundle.crt",
    },
    // Arch.
    Family {
        anchors: "etc/ca-certificates/trust-source/anchors",
        ending: "crt",
        command: &["trust", "extract-compat"],
        bundle: "etc/ssl/certs/ca-certificates.crt",
    },
    // SUSE.
    Family {
        anchors: "etc/pki/trust/anchors",
        ending: "pem",
        command: &["update-ca-certificates"],
        bundle: "etc/ssl/ca-bundle.pem",
    },
];

/// The trust store used by OpenSSL, GnuTLS and rustls.
pub struct System {
    anchors: PathBuf,
    bundle: PathBuf,
    family: &'static Family,
    tools: Tools,
}

impl System {
    /// Finds the store of this system; `None` if it is unknown. `base` is `/` except in tests.
    pub fn find(base: &Path, tools: &Tools) -> Option<System> {
        let here = |family: &&Family| base.join(family.anchors).is_dir() && tools.find(family.command[0]).is_some();
        let family = FAMILIES.iter().find(here)?;
        Some(System {
            anchors: base.join(family.anchors),
            bundle: base.join(family.bundle),
            family,
            tools: tools.clone(),
        })
    }

    fn anchor(&self, root: &RootCertificate) -> PathBuf {
        self.anchors.join(root.file_name(self.family.ending))
    }

    /// Runs the command that rebuilds the bundle, with additional arguments `more`.
    fn rebuild_bundle(&self, more: &[&str]) -> Result<(), TrustError> {
        // The command of every family has at least the program.
        let (program, arguments) = self.family.command.split_first().unwrap_or((&"", &[]));
        let arguments: Vec<_> = arguments.iter().chain(more).copied().collect();
        self.tools.run(RunAs::Root, program, &arguments).map(drop)
    }
}

impl TrustStore for System {
    fn reader(&self) -> &'static str {
        "system"
    }

    fn path(&self) -> &Path {
        &self.bundle
    }

    fn state(&self, root: &RootCertificate) -> TrustState {
        let bundle = match fs::read(&self.bundle) {
            Ok(bundle) => bundle,
            Err(error) => return TrustState::Unknown(format!("{}: {error}", self.bundle.display())),
        };
        let has = CertificateDer::pem_slice_iter(&bundle)
            .flatten()
            .any(|der| der == root.der);
        if has {
            TrustState::Trusted
        } else {
            TrustState::NotTrusted
        }
    }

    fn install(&self, root: &RootCertificate) -> Result<(), TrustError> {
        let (from, to) = (root.file.to_string_lossy(), self.anchor(root));
        let arguments = ["-m", "644", &from, &to.to_string_lossy()];
        self.tools.run(RunAs::Root, "install", &arguments)?;
        self.rebuild_bundle(&[])
    }

    fn remove(&self, root: &RootCertificate) -> Result<(), TrustError> {
        let anchor = self.anchor(root);
        if anchor.exists() {
            self.tools
                .run(RunAs::Root, "rm", &["-f", "--", &anchor.to_string_lossy()])?;
            // Without `--fresh`, links to removed certificates remain.
            let fresh: &[&str] = if self.family.command == ["update-ca-certificates"] {
                &["--fresh"]
            } else {
                &[]
            };
            self.rebuild_bundle(fresh)?;
        }
        Ok(())
    }
}
