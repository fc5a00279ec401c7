//! The store of the system: a folder of roots, a command that gathers them, and the bundle that programs read.

use std::fs;
use std::path::{Path, PathBuf};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::command::RunAs;
use super::{RootCertificate, Tools, TrustError, TrustState, TrustStore};

/// How a family of systems keeps its roots.
struct Family {
    /// Where an operator puts roots of his own.
    anchors: &'static str,
    ending: &'static str,
    command: &'static [&'static str],
    /// What the command writes, and OpenSSL reads.
    bundle: &'static str,
}

/// The first whose folder and command are there. Debian's name of the command is SUSE's too, so folders decide.
const FAMILIES: [Family; 4] = [
    Family {
        anchors: "usr/local/share/ca-certificates",
        ending: "crt",
        command: &["update-ca-certificates"],
        bundle: "etc/ssl/certs/ca-certificates.crt",
    },
    Family {
        anchors: "etc/pki/ca-trust/source/anchors",
        ending: "pem",
        command: &["update-ca-trust", "extract"],
        bundle: "etc/pki/tls/certs/ca-bundle.crt",
    },
    Family {
        anchors: "etc/ca-certificates/trust-source/anchors",
        ending: "crt",
        command: &["trust", "extract-compat"],
        bundle: "etc/ssl/certs/ca-certificates.crt",
    },
    Family {
        anchors: "etc/pki/trust/anchors",
        ending: "pem",
        command: &["update-ca-certificates"],
        bundle: "etc/ssl/ca-bundle.pem",
    },
];

/// What programs that use OpenSSL, GnuTLS and rustls trust.
pub struct System {
    anchors: PathBuf,
    bundle: PathBuf,
    family: &'static Family,
    tools: Tools,
}

impl System {
    /// `base` is `/` but in tests.
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

    fn rebuild_bundle(&self, more: &[&str]) -> Result<(), TrustError> {
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
            // Links to what is gone stay behind without it.
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
