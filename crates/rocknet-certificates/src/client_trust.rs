//! Verification of client certificates: the authorities and revocation lists of sites, read again when they change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ::aws_lc_rs::digest;
use arc_swap::ArcSwapOption;
use rocknet_config::model::ClientAuth;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};

use super::client_handshake::{ClientTickets, ClientVerifier};
use super::files::{Stamp, stamp};
use super::pem;
use super::resumption::{TicketCipher, TicketSecrets};
use super::roots::read_all_roots;

/// Maximum size of a file with revocation lists in bytes. Lists of large authorities have several megabytes.
const MAX_LISTS: u64 = 32 << 20;

/// Authorities and revocation lists of client certificates. Sites with the same files share one value, which outlives
/// reloads.
pub struct ClientTrust {
    ca: Vec<PathBuf>,
    crl: Vec<PathBuf>,
    provider: Arc<CryptoProvider>,
    secrets: Arc<TicketSecrets>,
    /// Result of the last successful read; `None` if no read has succeeded.
    current: ArcSwapOption<ClientVerification>,
    last_read: Mutex<LastRead>,
}

#[derive(Default)]
struct LastRead {
    /// Stamps of the files; `None` for a file that could not be examined.
    stamps: Vec<Option<Stamp>>,
    error: Option<String>,
}

/// Verification by one version of the files.
pub struct ClientVerification {
    verifier: Arc<dyn ClientCertVerifier>,
    /// Hash of the authorities and lists.
    digest: Vec<u8>,
    secrets: Arc<TicketSecrets>,
    /// Ciphers of session tickets, of sites that require a certificate and of those that do not.
    tickets: [OnceLock<Arc<TicketCipher>>; 2],
}

impl ClientTrust {
    /// Reads the files. An error is reported by [`ClientTrust::error`].
    pub(super) fn new(
        client: &ClientAuth,
        provider: &Arc<CryptoProvider>,
        secrets: &Arc<TicketSecrets>,
    ) -> ClientTrust {
        let trust = ClientTrust {
            ca: client.ca.clone(),
            crl: client.crl.clone(),
            provider: Arc::clone(provider),
            secrets: Arc::clone(secrets),
            current: ArcSwapOption::empty(),
            last_read: Mutex::default(),
        };
        trust.reload_if_changed();
        trust
    }

    /// Returns the current verification; `None` if no read has succeeded.
    pub fn current(&self) -> Option<Arc<ClientVerification>> {
        self.current.load_full()
    }

    /// Returns true if `verification` is the current one.
    pub fn is_current(&self, verification: &Arc<ClientVerification>) -> bool {
        let current = self.current.load();
        current
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, verification))
    }

    /// Returns the error of the last read, if any. A previous version of the files then stays in use.
    pub(super) fn error(&self) -> Option<String> {
        self.last_read().error.clone()
    }

    /// Reads the files again if one of them has changed. Returns `None` if nothing has changed.
    pub(super) fn reload_if_changed(&self) -> Option<Result<(), String>> {
        let mut read = self.last_read();
        // Taken before the files are read, so that the next call detects a change during the read.
        let stamps: Vec<_> = self.ca.iter().chain(&self.crl).map(|path| stamp(path)).collect();
        if read.stamps == stamps {
            return None;
        }
        read.stamps = stamps;
        let result = self.read();
        read.error = result.as_ref().err().cloned();
        Some(result.map(|verification| {
            let current = self.current.load();
            // Files that were written again without a change keep sessions, and connections are not verified again.
            if current
                .as_ref()
                .is_none_or(|current| current.digest != verification.digest)
            {
                self.current.store(Some(Arc::new(verification)));
            }
        }))
    }

    /// Returns the files, for log lines.
    pub(super) fn files(&self) -> String {
        let names = self.ca.iter().chain(&self.crl).map(|path| path.display().to_string());
        names.collect::<Vec<_>>().join(", ")
    }

    fn read(&self) -> Result<ClientVerification, String> {
        let (roots, lists) = (read_all_roots(&self.ca)?, read_revocation_lists(&self.crl)?);
        let mut store = RootCertStore::empty();
        for root in &roots {
            store
                .add(root.clone())
                .map_err(|error| format!("`client_ca`: {error}"))?;
        }
        // Hashes have a fixed length, and the number of roots comes first, so that different files have different
        // digests.
        let mut digest = (roots.len() as u64).to_be_bytes().to_vec();
        for der in roots
            .iter()
            .map(|root| &root[..])
            .chain(lists.iter().map(|list| &list[..]))
        {
            digest.extend_from_slice(digest::digest(&digest::SHA256, der).as_ref());
        }
        // As with nginx, a list is needed for the issuer of each certificate of a chain, and an outdated list does not
        // count.
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(store), Arc::clone(&self.provider))
            .with_crls(lists)
            .enforce_revocation_expiration()
            .build()
            .map_err(|error| format!("`client_ca`: {error}"))?;
        Ok(ClientVerification {
            verifier,
            digest,
            secrets: Arc::clone(&self.secrets),
            tickets: Default::default(),
        })
    }

    fn last_read(&self) -> MutexGuard<'_, LastRead> {
        self.last_read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows the files.
impl fmt::Debug for ClientTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ca, crl) = (&self.ca, &self.crl);
        f.debug_struct("ClientTrust")
            .field("ca", ca)
            .field("crl", crl)
            .finish_non_exhaustive()
    }
}

impl ClientVerification {
    /// Returns true if a chain, the certificate of the client first, is valid now.
    pub fn accepts(&self, chain: &[CertificateDer<'_>]) -> bool {
        chain.split_first().is_some_and(|(leaf, intermediates)| {
            let now = UnixTime::now();
            self.verifier.verify_client_cert(leaf, intermediates, now).is_ok()
        })
    }

    /// Returns the configuration of one handshake: `base` with the request for a client certificate.
    pub(super) fn configure(
        &self,
        base: &ServerConfig,
        versions: &[&'static SupportedProtocolVersion],
        is_required: bool,
    ) -> Option<ServerConfig> {
        let tickets = Arc::new(ClientTickets::new(self.tickets(is_required)));
        let verifier = ClientVerifier::new(Arc::clone(&self.verifier), is_required, Arc::clone(&tickets));
        let mut config = ServerConfig::builder_with_provider(Arc::clone(base.crypto_provider()))
            .with_protocol_versions(versions)
            .ok()?
            .with_client_cert_verifier(Arc::new(verifier))
            .with_cert_resolver(Arc::clone(&base.cert_resolver));
        config.alpn_protocols.clone_from(&base.alpn_protocols);
        config.session_storage = Arc::clone(&base.session_storage);
        config.key_log = Arc::clone(&base.key_log);
        config.ticketer = tickets;
        config.max_early_data_size = 0;
        Some(config)
    }

    /// Returns the cipher of session tickets. A session is resumed only by sites with the same authorities and lists,
    /// because its certificate is not verified again.
    fn tickets(&self, is_required: bool) -> Arc<TicketCipher> {
        let cipher = self.tickets[usize::from(is_required)].get_or_init(|| {
            let mut context = match is_required {
                true => b"verified client certificate".to_vec(),
                false => b"optional verified client certificate".to_vec(),
            };
            context.extend_from_slice(&self.digest);
            Arc::new(TicketCipher::new(Arc::clone(&self.secrets), context))
        });
        Arc::clone(cipher)
    }
}

/// Reads revocation lists: PEM files with any number of them, or DER files with one.
pub(super) fn read_revocation_lists(files: &[PathBuf]) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let mut lists = Vec::new();
    for path in files {
        lists.extend(read_lists(path).map_err(|error| format!("{}: {error}", path.display()))?);
    }
    Ok(lists)
}

fn read_lists(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    use x509_parser::prelude::{CertificateRevocationList, FromDer};

    let bytes = pem::read_up_to(path, MAX_LISTS).map_err(|error| error.to_string())?;
    let lists = match bytes.first() {
        // The tag of a DER sequence.
        Some(0x30) => vec![CertificateRevocationListDer::from(bytes)],
        _ => CertificateRevocationListDer::pem_slice_iter(&bytes)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?,
    };
    if lists.is_empty() {
        return Err("contains no revocation list".to_owned());
    }
    for list in &lists {
        let (_, parsed) = CertificateRevocationList::from_der(list).map_err(|_| "is no revocation list".to_owned())?;
        let ends = parsed.next_update().map(|end| end.timestamp());
        if ends.is_some_and(|end| u64::try_from(end).unwrap_or(0) < UnixTime::now().as_secs()) {
            tracing::warn!(
                file = %path.display(),
                "the revocation list of {} is outdated, so certificates of this authority are refused",
                parsed.issuer()
            );
        }
    }
    Ok(lists)
}
