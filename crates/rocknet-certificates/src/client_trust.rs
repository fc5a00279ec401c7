//! Verification of client certificates: the authorities and revocation lists of sites, read again when they change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
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

use super::client_handshake::{ClientTickets, ClientVerifier, end_of_validity};
use super::files::{Stamp, stamp};
use super::pem;
use super::resumption::{TicketCipher, TicketSecrets};
use super::roots::read_all_roots;

/// Maximum size in bytes of a file with revocation lists. Lists of large authorities have several megabytes.
const MAX_LIST_FILE: u64 = 32 << 20;

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
    lists: Vec<ListPeriod>,
    /// Hash of the authorities and lists.
    digest: Vec<u8>,
    secrets: Arc<TicketSecrets>,
    /// Ciphers of session tickets: first of sites that do not require a certificate, then of sites that do.
    tickets: [OnceLock<Arc<TicketCipher>>; 2],
}

/// Period of a revocation list. Times are in seconds of Unix time.
struct ListPeriod {
    /// Name of the authority.
    issuer: String,
    /// Time from which the log warns that the list is about to end: a quarter of its period before the end, and at most
    /// [`MAX_NOTICE_S`].
    notice: u64,
    /// Time from which the list does not count (`nextUpdate`).
    end: u64,
    /// Number of warnings that were logged or are no longer due.
    warnings: AtomicU8,
}

/// Maximum time in seconds between the first warning of a list and its end.
const MAX_NOTICE_S: u64 = 3 * 24 * 3600;

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
        trust.warn_of_ending_revocation_lists();
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

    /// Logs a warning for each revocation list that ends soon, and another one once it has ended. They are not
    /// logged again until a file changes.
    pub(super) fn warn_of_ending_revocation_lists(&self) {
        for warning in self.due_warnings(UnixTime::now().as_secs()) {
            tracing::warn!(files = self.files(), "{warning}");
        }
    }

    fn due_warnings(&self, now: u64) -> Vec<String> {
        let current = self.current.load();
        let lists = current.iter().flat_map(|verification| &verification.lists);
        lists.filter_map(|list| list.due_warning(now)).collect()
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
        let periods = lists.iter().filter_map(|list| ListPeriod::of(list)).collect();
        // As with nginx, if there are lists, each issuer in a chain needs a list that is not outdated. Without any
        // list, the verifier does not check for revocation.
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(store), Arc::clone(&self.provider))
            .with_crls(lists)
            .enforce_revocation_expiration()
            .build()
            .map_err(|error| format!("`client_ca`: {error}"))?;
        Ok(ClientVerification {
            verifier,
            lists: periods,
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

impl ListPeriod {
    /// Returns the period of a list; `None` if it has no end.
    fn of(list: &[u8]) -> Option<ListPeriod> {
        use x509_parser::prelude::{CertificateRevocationList, FromDer};

        let (_, parsed) = CertificateRevocationList::from_der(list).ok()?;
        let seconds = |time: i64| u64::try_from(time).unwrap_or(0);
        let end = seconds(parsed.next_update()?.timestamp());
        let period = end.saturating_sub(seconds(parsed.last_update().timestamp()));
        Some(ListPeriod {
            issuer: parsed.issuer().to_string(),
            notice: end - MAX_NOTICE_S.min(period / 4).min(end),
            end,
            warnings: AtomicU8::new(0),
        })
    }

    fn due_warning(&self, now: u64) -> Option<String> {
        let due = u8::from(now >= self.notice) + u8::from(now >= self.end);
        if self.warnings.fetch_max(due, Ordering::Relaxed) >= due {
            return None;
        }
        let issuer = &self.issuer;
        Some(match self.end.saturating_sub(now) {
            0 => format!(
                "the revocation list of {issuer} is outdated, so certificates of this authority are refused: install \
                 the next list"
            ),
            seconds => format!(
                "the revocation list of {issuer} ends in {} h, and certificates of this authority are refused then: \
                 install the next list",
                seconds.div_ceil(3600)
            ),
        })
    }
}

impl ClientVerification {
    /// Returns the first time after `now` at which a certificate of the chain or a revocation list ends. The result for
    /// the chain may change then. Times are in seconds of Unix time.
    pub fn valid_until(&self, chain: &[CertificateDer<'_>], now: u64) -> u64 {
        // A certificate is valid in its last second, and a list is not.
        let certificates = chain.iter().filter_map(|der| end_of_validity(der)?.checked_add(1));
        let ends = self.lists.iter().map(|list| list.end).chain(certificates);
        ends.filter(|end| *end > now).min().unwrap_or(u64::MAX)
    }

    /// Returns true if a chain, the certificate of the client first, is valid now.
    pub fn accepts(&self, chain: &[CertificateDer<'_>]) -> bool {
        chain.split_first().is_some_and(|(leaf, intermediates)| {
            let now = UnixTime::now();
            self.verifier.verify_client_cert(leaf, intermediates, now).is_ok()
        })
    }

    /// Returns the configuration of one handshake: `base` with the request for a client certificate. `is_required`:
    /// true if the handshake fails without one. Returns `None` if the TLS library does not support `versions`.
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

    let bytes = pem::read_up_to(path, MAX_LIST_FILE).map_err(|error| error.to_string())?;
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
        CertificateRevocationList::from_der(list).map_err(|_| "is no revocation list".to_owned())?;
    }
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_warned_of_once_before_its_end_and_once_after_it() {
        let mut issuer = rcgen::CertificateParams::default();
        issuer.key_usages = vec![rcgen::KeyUsagePurpose::CrlSign];
        let issuer = rcgen::Issuer::new(issuer, rcgen::KeyPair::generate().expect("a key"));
        let list = rcgen::CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2020, 1, 1),
            next_update: rcgen::date_time_ymd(2020, 1, 9),
            crl_number: rcgen::SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: Vec::new(),
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        let list = ListPeriod::of(list.signed_by(&issuer).expect("a list").der()).expect("a period");
        let day = 24 * 3600;
        assert_eq!(list.end - list.notice, 2 * day);
        for (at, expected) in [
            (list.notice - 1, None),
            (list.end - day, Some("ends in 24 h")),
            (list.end - 1, None),
            (list.end, Some("is outdated")),
            (list.end + day, None),
        ] {
            let warning = list.due_warning(at);
            assert_eq!(warning.is_some(), expected.is_some(), "{warning:?}");
            let (warning, expected) = (warning.unwrap_or_default(), expected.unwrap_or_default());
            assert!(warning.contains(expected), "{warning}");
        }
    }
}
