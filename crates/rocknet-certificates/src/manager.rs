//! The certificate manager: owns the issuers, and knows the sets of certificate files that sites use. While the server
//! runs, it renews issued certificates and reloads changed files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

pub use rocknet_config::SYSTEM_STATE_FOLDER;
use rocknet_config::model::{CertificateFiles, CertificateSource, ClientAuth, Config, HostPattern, Mode, Site};
use rocknet_config::user_state_folder;
use rustls::ServerConfig;

use super::acme::AcmeIssuer;
use super::client_trust::ClientTrust;
use super::files::{FileSet, Reload};
use super::inspection::{is_error, listed};
use super::local::LocalIssuer;
use super::resumption::{SessionStores, TicketSecrets};
use super::secure_site::{SecureSite, SiteCertificates};
use super::site_requests::{has_addresses, names, private_addresses, requests};
use super::tls_config::TlsConfigBuilder;
use super::{CertificateRequest, CertificateStore, Issuer};
use rocknet_io::owned_thread::OwnedThread;

/// Interval between checks for changed files and due renewals. A replaced file is in use after at most this time.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Manages all certificates of one server.
pub struct CertificateManager {
    /// The certificates that issuers made, for lookups during handshakes.
    pub store: Arc<CertificateStore>,
    tls_configs: TlsConfigBuilder,
    /// Configuration of handshakes that only respond to a TLS-ALPN-01 challenge.
    pub challenge_config: Arc<ServerConfig>,
    /// Sessions that sites store for early data.
    pub sessions: SessionStores,
    state: Arc<Mutex<ManagerState>>,
    /// The thread that renews certificates and reloads files; `None` until a site uses TLS. Dropping the sender stops
    /// the thread.
    thread: Mutex<Option<(SyncSender<()>, OwnedThread)>>,
}

/// State shared with the thread `rn-certs`.
#[derive(Default)]
struct ManagerState {
    issuers: Vec<Box<dyn Issuer>>,
    /// Sets of files in use. The references are weak, because the sites own the sets.
    files: HashMap<Vec<CertificateFiles>, Weak<FileSet>>,
    /// Verifications of client certificates in use, by the files of authorities and revocation lists.
    clients: HashMap<(Vec<PathBuf>, Vec<PathBuf>), Weak<ClientTrust>>,
    /// For each set of files, the sites that use it and their names.
    sites: HashMap<Vec<CertificateFiles>, Vec<(String, Vec<HostPattern>)>>,
    /// The configuration, and the private addresses of this machine that its certificates contain. Each check compares
    /// them with the present addresses. `None` if no certificate contains the addresses.
    addressed: Option<(Config, Vec<String>)>,
}

impl CertificateManager {
    /// Creates a manager with the issuers for the local CA and for ACME. Starts no thread. `secrets`: session ticket
    /// secrets of a previous process; `None` to create new ones.
    ///
    /// # Errors
    /// Returns a message if the TLS library cannot be set up. The state folder is not accessed yet.
    pub fn start(
        config: &Config,
        state_folder: &Path,
        secrets: Option<TicketSecrets>,
    ) -> Result<Arc<CertificateManager>, String> {
        let local = LocalIssuer::new(state_folder);
        let acme = AcmeIssuer::new(state_folder, &config.tls);
        CertificateManager::with(vec![Box::new(local), Box::new(acme)], secrets)
    }

    /// Creates a manager with the given issuers.
    ///
    /// # Errors
    /// Returns a message if the TLS library cannot be set up.
    pub fn new(issuers: Vec<Box<dyn Issuer>>) -> Result<Arc<CertificateManager>, String> {
        CertificateManager::with(issuers, None)
    }

    fn with(issuers: Vec<Box<dyn Issuer>>, secrets: Option<TicketSecrets>) -> Result<Arc<CertificateManager>, String> {
        let secrets = secrets.map_or_else(TicketSecrets::new, Ok)?;
        let tls_configs = TlsConfigBuilder::new(secrets);
        let challenge_config = Arc::new(tls_configs.challenge()?);
        let state = ManagerState {
            issuers,
            ..ManagerState::default()
        };
        Ok(Arc::new(CertificateManager {
            store: Arc::default(),
            tls_configs,
            challenge_config,
            sessions: SessionStores::default(),
            state: Arc::new(Mutex::new(state)),
            thread: Mutex::default(),
        }))
    }

    /// Reads the certificate files of a configuration. Call this function before the process drops the privileges that
    /// reading the files requires. The contents stay in memory until the returned sets are dropped.
    pub fn read_files(&self, config: &Config) -> Vec<Arc<FileSet>> {
        let sources = config.sites.iter().filter_map(|site| Some(&site.tls.as_ref()?.source));
        sources
            .filter_map(|source| match source {
                CertificateSource::Files(files) => Some(self.files(files)),
                CertificateSource::Auto | CertificateSource::Local => None,
            })
            .collect()
    }

    /// Returns the set of these files, which sites with the same files share. Reads the files if the set is new or a
    /// file has changed.
    fn files(&self, files: &[CertificateFiles]) -> Arc<FileSet> {
        let mut state = lock(&self.state);
        if let Some(set) = state.files.get(files).and_then(Weak::upgrade) {
            // The result is not logged, because the check of the configuration reports the findings.
            set.reload_if_changed(SystemTime::now());
            return set;
        }
        let set = Arc::new(FileSet::new(files.to_vec()));
        state.files.insert(files.to_vec(), Arc::downgrade(&set));
        set
    }

    /// Returns the verification of client certificates by these files, which sites with the same files share. Reads the
    /// files if the value is new or a file has changed.
    fn client_trust(&self, client: &ClientAuth) -> Arc<ClientTrust> {
        let mut state = lock(&self.state);
        let key = (client.ca.clone(), client.crl.clone());
        if let Some(trust) = state.clients.get(&key).and_then(Weak::upgrade) {
            trust.reload_if_changed();
            return trust;
        }
        let trust = Arc::new(self.tls_configs.client_trust(client));
        state.clients.insert(key, Arc::downgrade(&trust));
        trust
    }

    /// Returns the secrets of session tickets.
    pub fn ticket_secrets(&self) -> &TicketSecrets {
        self.tls_configs.ticket_secrets()
    }

    /// Prepares the TLS side of a site; `None` if the site is served only in clear text. `mode` is the mode of the
    /// server. `remembered`: settings that clients remember for early data; see
    /// [`SessionStore::new`](super::resumption::SessionStore::new).
    pub fn secure_site(&self, site: &Site, mode: Mode, remembered: &[u8]) -> Option<SecureSite> {
        let tls = site.tls.as_ref()?;
        let certificates = match &tls.source {
            CertificateSource::Files(files) => SiteCertificates::Files(self.files(files)),
            CertificateSource::Auto | CertificateSource::Local => SiteCertificates::Issued {
                // `names` returns at least one name.
                default_name: names(site, mode, &[]).swap_remove(0),
            },
        };
        let config = self.tls_configs.build(tls.min, mode).map(Arc::new);
        let trust = tls.client.as_ref().map(|client| self.client_trust(client));
        // Early data arrives in resumed sessions, in which a client's certificate is not verified again. A site with
        // client authentication therefore accepts no early data.
        let accepts_early_data = tls.early_data && tls.client.is_none();
        let early_data = accepts_early_data.then(|| self.sessions.of_site(&site.name, remembered));
        Some(SecureSite::new(site, tls, certificates, config, trust, early_data))
    }

    /// Returns the set of these files as it was last read; `None` if no site uses them.
    pub(super) fn loaded_files(&self, files: &[CertificateFiles]) -> Option<Arc<FileSet>> {
        lock(&self.state).files.get(files).and_then(Weak::upgrade)
    }

    /// Passes the certificate requests of a configuration to the issuers. Starts the thread if a site uses TLS.
    ///
    /// # Errors
    /// Returns the error of the operating system if the thread cannot be started.
    pub fn manage(&self, config: &Config) -> std::io::Result<()> {
        let addresses = private_addresses();
        let mut state = lock(&self.state);
        for issuer in &mut state.issuers {
            issuer.configure(&config.tls);
        }
        state.set_requests(&requests(config, &addresses), &self.store);
        let has_addresses = config.sites.iter().any(|site| has_addresses(site, config.server.mode));
        state.addressed = has_addresses.then(|| (config.clone(), addresses));
        state.sites.clear();
        for site in &config.sites {
            if let Some(CertificateSource::Files(files)) = site.tls.as_ref().map(|tls| &tls.source) {
                let sites = state.sites.entry(files.clone()).or_default();
                sites.push((site.name.clone(), site.names.clone()));
            }
        }
        drop(state);
        if config.sites.iter().any(|site| site.tls.is_some()) {
            self.start_thread()?;
        }
        Ok(())
    }

    fn start_thread(&self) -> std::io::Result<()> {
        let mut slot = lock(&self.thread);
        if slot.is_some() {
            return Ok(());
        }
        let (stop, stopped) = sync_channel(0);
        let (state, store) = (Arc::clone(&self.state), Arc::clone(&self.store));
        let thread = OwnedThread::start("rn-certs", move || {
            while stopped.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                lock(&state).maintain(SystemTime::now(), &store);
            }
        })?;
        *slot = Some((stop, thread));
        Ok(())
    }

    /// Stops the thread and the issuers. Returns true if all of them ended before `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        let thread = lock(&self.thread).take();
        let has_ended = thread.is_none_or(|(stop, thread)| {
            drop(stop);
            thread.join(deadline)
        });
        let mut state = lock(&self.state);
        let issuers = state.issuers.iter_mut();
        issuers.fold(has_ended, |ended, issuer| issuer.stop(deadline) && ended)
    }

    /// Runs one check for due renewals and changed files, as the thread does every few seconds. For tests.
    #[doc(hidden)]
    pub fn maintain(&self) {
        lock(&self.state).maintain(SystemTime::now(), &self.store);
    }
}

impl ManagerState {
    /// Passes requests to their issuers.
    fn set_requests(&mut self, requests: &[CertificateRequest], store: &Arc<CertificateStore>) {
        for issuer in &mut self.issuers {
            let authority = issuer.authority();
            let own: Vec<_> = requests
                .iter()
                .filter(|one| one.authority == authority)
                .cloned()
                .collect();
            issuer.set_requests(&own, store);
        }
    }

    /// Requests certificates for the present addresses of this machine, if they have changed.
    fn follow_addresses(&mut self, present: Vec<String>, store: &Arc<CertificateStore>) {
        let Some((config, known)) = &mut self.addressed else {
            return;
        };
        if *known == present {
            return;
        }
        let requests = requests(config, &present);
        *known = present;
        self.set_requests(&requests, store);
        tracing::info!("the addresses of this machine have changed: certificates for the new ones are in use");
    }

    /// Renews issued certificates that are due, reads changed files again, and forgets sets that no site uses.
    fn maintain(&mut self, now: SystemTime, store: &Arc<CertificateStore>) {
        if self.addressed.is_some() {
            self.follow_addresses(private_addresses(), store);
        }
        for issuer in &mut self.issuers {
            issuer.renew_due(now, store);
        }
        let sites = &self.sites;
        self.files.retain(|files, set| {
            let Some(set) = set.upgrade() else { return false };
            if let Some(reload) = set.reload_if_changed(now) {
                let sites = sites.get(files).map(Vec::as_slice).unwrap_or_default();
                report_change(&set, reload, sites);
            }
            true
        });
        self.clients.retain(|_, trust| {
            let Some(trust) = trust.upgrade() else { return false };
            match trust.reload_if_changed() {
                Some(Ok(())) => tracing::info!(
                    files = trust.files(),
                    "authorities and revocation lists of client certificates reloaded"
                ),
                Some(Err(error)) => {
                    tracing::error!("{error}; client certificates are verified by the previous files");
                }
                None => {}
            }
            // A revocation list can end although no file has changed.
            trust.warn_of_ending_revocation_lists();
            true
        });
    }
}

/// Logs the result after certificate files were read again. Called once for each change.
fn report_change(set: &FileSet, reload: Reload, sites: &[(String, Vec<HostPattern>)]) {
    let mut names: Vec<HostPattern> = Vec::new();
    for name in sites.iter().flat_map(|(_, names)| names) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let site_names: Vec<String> = sites.iter().map(|(site, _)| site.clone()).collect();
    let shown_sites = listed(&site_names);
    let findings = set.findings_for(&names);
    if findings.iter().any(is_error) {
        let kept = match set.certificate_set() {
            Some(_) => "the previous certificate stays in use",
            None => "no certificate was loaded before, so handshakes are refused",
        };
        for finding in findings.iter().filter(|finding| is_error(finding)) {
            tracing::error!(site = shown_sites, help = finding.help, "{}; {kept}", finding.message);
        }
        return;
    }
    for finding in &findings {
        tracing::warn!(site = shown_sites, help = finding.help, "{}", finding.message);
    }
    if reload == Reload::Replaced {
        tracing::info!(
            site = shown_sites,
            "certificate files reloaded; new handshakes use them"
        );
    }
}

/// Returns the state folder: `server.state`, or the default for the account of this process.
///
/// Call this function once, before the process drops root privileges, and pass the result on. Afterwards the process
/// runs under another account, but `HOME` still names the folder of the previous account.
pub fn state_folder(config: &Config) -> PathBuf {
    let system = || PathBuf::from(SYSTEM_STATE_FOLDER);
    config.server.state.clone().unwrap_or_else(|| {
        if rocknet_io::privileges::is_root() {
            return system();
        }
        user_state_folder().unwrap_or_else(system)
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use rocknet_config::environment::MemoryEnvironment;

    use super::super::storage::memory::MemoryStorage;
    use super::*;

    #[test]
    fn certificates_follow_the_addresses_of_the_machine() {
        let text =
            "[server]\nmode = \"dev\"\n[site.default]\nlisten = \"https://*:8443\"\nroot = \"/w\"\ntls = \"local\"\n";
        let world = MemoryEnvironment {
            any_directory: true,
            ..MemoryEnvironment::default()
        };
        let config = rocknet_config::parse(text, Path::new("/r.toml"), &world)
            .expect("valid")
            .config;
        let issuer = LocalIssuer::with_storage(Arc::new(MemoryStorage::default()));
        let manager = CertificateManager::new(vec![Box::new(issuer)]).expect("a manager");
        // The thread of `manage` would use the addresses of this machine.
        assert!(has_addresses(&config.sites[0], Mode::Dev) && !has_addresses(&config.sites[0], Mode::Prod));
        lock(&manager.state).addressed = Some((config, Vec::new()));
        let follow = |addresses: &[&str]| {
            let present = addresses.iter().map(|address| (*address).to_owned()).collect();
            lock(&manager.state).follow_addresses(present, &manager.store);
        };
        let covers = |name: &str| {
            let set = manager.store.find(name)?;
            let names = set.certificates()[0].names().to_vec();
            Some(names)
        };
        follow(&["10.9.8.7"]);
        let names = covers("localhost").expect("a certificate");
        assert!(names.contains(&"10.9.8.7".to_owned()), "{names:?}");
        follow(&["10.9.8.6"]);
        assert_eq!(covers("10.9.8.7"), None);
        assert_eq!(covers("10.9.8.6"), covers("localhost"));
    }
}
