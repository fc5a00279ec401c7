//! `rocknet trust` and `rocknet untrust`: install the local CA in the trust stores of the system and the browsers, or
//! remove it, then check each store.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rocknet::certificates::local::{CaCertificate, CaKind, LocalCa};
use rocknet::certificates::storage::FileStorage;
use rocknet::trust::{Home, RootCertificate, Tools, TrustState, TrustStore, browser_stores, system_store};
use rocknet_config::environment::ProcessEnvironment;
use rocknet_config::model::{CertificateSource, HostPattern, Mode, Site};
use rocknet_config::{Config, Loaded, is_local_name};
use serde_json::json;

use super::{ExitStatus, Failure, print, search};

/// Let this system and its browsers trust the local CA
///
/// Sites with `tls = "local"` get their certificates from a CA of this machine. Until it is trusted, browsers warn. It
/// can sign only for private names: localhost, *.test, *.internal, *.local, private addresses.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub stores: StoreOptions,
    /// Change nothing, and show for each store whether it trusts the CA
    #[arg(long)]
    pub look: bool,
    /// Also trust the CA for any name. It signs for public names on this machine. An attacker with its key can
    /// impersonate any site
    #[arg(long)]
    pub dangerous_any_name: bool,
}

/// Remove the local CA from every store that trusts it
#[derive(Debug, clap::Args)]
pub struct UntrustOptions {
    #[command(flatten)]
    pub stores: StoreOptions,
}

#[derive(Debug, clap::Args)]
pub struct StoreOptions {
    /// The configuration whose state folder holds the CA; by default the one that `rocknet run` would serve
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Skip the store of the system: the stores of browsers need no special rights
    #[arg(long)]
    pub browsers: bool,
    /// Print the results as JSON, for programs
    #[arg(long)]
    pub json: bool,
}

/// Action on each store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TrustAction {
    Install,
    Remove,
    Inspect,
}

/// State of a store after the action.
struct StoreResult {
    /// Program that reads the store; see [`TrustStore::reader`].
    reader: &'static str,
    /// Path of the store.
    path: PathBuf,
    /// Common name of the CA.
    root: String,
    /// State of the CA in the store.
    found: TrustState,
    /// Error of the action.
    trouble: Option<String>,
}

/// Runs `rocknet trust`. Fails unless there is a store, and all stores trust the CAs afterwards.
pub fn run(options: &Options) -> Result<(), Failure> {
    let action = if options.look {
        TrustAction::Inspect
    } else {
        TrustAction::Install
    };
    let any_name = options.dangerous_any_name.then_some(CaKind::AnyName);
    let kinds: Vec<_> = [Some(CaKind::Private), any_name].into_iter().flatten().collect();
    let missing = match action {
        TrustAction::Install => MissingCa::Create,
        TrustAction::Inspect | TrustAction::Remove => MissingCa::LeaveOut,
    };
    let state = state_folder(options.stores.config.as_deref())?;
    let roots = roots(&state, &kinds, missing)?;
    let rows = apply_to_stores(&roots, action, options.stores.browsers);
    print_results(&rows, &roots, options.stores.json);
    let good = !rows.is_empty() && rows.iter().all(|row| row.found == TrustState::Trusted);
    if good {
        Ok(())
    } else {
        Err(Failure::Reported(ExitStatus::Failed))
    }
}

/// Runs `rocknet untrust`. Fails if a store still trusts a CA afterwards, or if this is unknown.
pub fn run_untrust(options: &UntrustOptions) -> Result<(), Failure> {
    let state = state_folder(options.stores.config.as_deref())?;
    let roots = roots(&state, &CaKind::ALL, MissingCa::LeaveOut)?;
    let rows = apply_to_stores(&roots, TrustAction::Remove, options.stores.browsers);
    print_results(&rows, &roots, options.stores.json);
    let good = rows.iter().all(|row| row.found == TrustState::NotTrusted);
    if good {
        Ok(())
    } else {
        Err(Failure::Reported(ExitStatus::Failed))
    }
}

/// Returns the state folder of the named or found configuration. Without a configuration, returns the state folder of
/// the current user.
pub fn state_folder(config: Option<&Path>) -> Result<PathBuf, Failure> {
    match config.map(Path::to_path_buf).or_else(search::find) {
        Some(file) => {
            // `ProcessEnvironment` inspects no certificates, because only the state folder is needed.
            let Loaded { config, .. } =
                rocknet_config::load(&file, &ProcessEnvironment).map_err(Failure::Configuration)?;
            Ok(rocknet::certificates::state_folder(&config))
        }
        None => Ok(rocknet::certificates::state_folder(&Config::default())),
    }
}

/// Handling of a CA that is missing or damaged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MissingCa {
    /// Creates it. A CA that is about to expire is replaced, too.
    Create,
    /// Leaves it out. The state folder stays unchanged.
    LeaveOut,
}

/// Returns the CAs of a state folder.
fn roots(state: &Path, kinds: &[CaKind], missing: MissingCa) -> Result<Vec<RootCertificate>, Failure> {
    let folder = FileStorage::new(state);
    let mut roots = Vec::new();
    for &kind in kinds {
        let failed = |error| Failure::Failed(format!("{}: {error}", state.display()));
        let found = if missing == MissingCa::Create {
            Some(
                LocalCa::open_or_make(&folder, kind, SystemTime::now())
                    .map_err(failed)?
                    .root()
                    .clone(),
            )
        } else {
            CaCertificate::find(&folder, kind).map_err(failed)?
        };
        roots.extend(found.and_then(|found| RootCertificate::new(state.join(kind.certificate_item()), found.der)));
    }
    Ok(roots)
}

/// Applies an action for each CA to each trust store. `only_browsers`: true to leave out the store of the system.
fn apply_to_stores(roots: &[RootCertificate], action: TrustAction, only_browsers: bool) -> Vec<StoreResult> {
    let tools = Tools::of_process();
    let stores = if only_browsers {
        stores_of_browsers(&tools)
    } else {
        all_stores(&tools)
    };
    let mut rows = Vec::new();
    for root in roots {
        rows.extend(stores.iter().map(|store| apply(&**store, root, action)));
    }
    rows
}

/// Returns the stores of the current user's browsers. A user without a home directory has none.
fn stores_of_browsers(tools: &Tools) -> Vec<Box<dyn TrustStore>> {
    let home = Home::of_user(tools);
    home.map(|home| browser_stores(&home, tools)).unwrap_or_default()
}

/// Returns the store of the system, then those of the current user's browsers.
fn all_stores(tools: &Tools) -> Vec<Box<dyn TrustStore>> {
    system_store(tools)
        .into_iter()
        .chain(stores_of_browsers(tools))
        .collect()
}

/// Applies an action for one CA to one trust store, and determines the state of the store afterwards.
fn apply(store: &dyn TrustStore, root: &RootCertificate, action: TrustAction) -> StoreResult {
    let before = store.state(root);
    let done = match (action, &before) {
        (TrustAction::Install, TrustState::Trusted) | (TrustAction::Inspect, _) => Ok(()),
        (TrustAction::Install, _) => store.install(root),
        (TrustAction::Remove, _) => store.remove(root),
    };
    StoreResult {
        reader: store.reader(),
        path: store.path().to_owned(),
        root: root.name.clone(),
        found: if action == TrustAction::Inspect {
            before
        } else {
            store.state(root)
        },
        trouble: done.err().map(|trouble| trouble.to_string()),
    }
}

/// Returns a hint for the start-up block if browsers will warn: a site has a certificate of the local CA, and this
/// system does not trust that CA. `file` is the configuration, if there is one.
pub fn hint(config: &Config, file: Option<&Path>) -> Option<String> {
    let is_signed_here = |site: &&Site| match site.tls.as_ref().map(|tls| &tls.source) {
        Some(CertificateSource::Local) => true,
        Some(CertificateSource::Auto) => {
            let is_local = |(HostPattern::Exact(name) | HostPattern::Wildcard(name)): &HostPattern| is_local_name(name);
            config.server.mode == Mode::Dev || site.names.iter().all(is_local)
        }
        Some(CertificateSource::Files(_)) | None => false,
    };
    let site = config.sites.iter().find(is_signed_here)?;
    let is_trusted = is_trusted_by_system(&rocknet::certificates::state_folder(config))?;
    let named = file.map(|file| format!(" -c {}", file.display())).unwrap_or_default();
    // A site without a host name is named by its port.
    let shown = match site.name.strip_prefix(':') {
        Some(_) => "this site",
        None => &site.name,
    };
    (!is_trusted).then(|| {
        format!(
            "Browsers will warn of {shown}: its certificate is signed by this machine's own CA, which is not trusted here \
             yet.\nTo trust it, type: rocknet trust{named}"
        )
    })
}

/// Returns true if the system's store trusts the local CA. Returns false if the store does not trust it, or if the
/// system has no known store. `None` if there is no CA yet or the store cannot be read. The function only reads the
/// certificate and the store, and runs no program, so it is fast enough for the start.
fn is_trusted_by_system(state: &Path) -> Option<bool> {
    let root = roots(state, &[CaKind::Private], MissingCa::LeaveOut).ok()?.pop()?;
    match system_store(&Tools::of_process()).map(|store| store.state(&root)) {
        Some(TrustState::Trusted) => Some(true),
        Some(TrustState::NotTrusted) | None => Some(false),
        Some(TrustState::Unknown(_)) => None,
    }
}

/// Returns each trust store, by its reader and path, with the state of the local CA in it. Includes the store of the
/// system and those of the current user's browsers, and changes nothing. `None` if there is no local CA yet. Used by
/// `rocknet doctor`.
pub fn inspect(state: &Path) -> Result<Option<Vec<(String, TrustState)>>, Failure> {
    let roots = roots(state, &[CaKind::Private], MissingCa::LeaveOut)?;
    if roots.is_empty() {
        return Ok(None);
    }
    let only_browsers = false;
    let rows = apply_to_stores(&roots, TrustAction::Inspect, only_browsers);
    Ok(Some(
        rows.into_iter().map(|row| (row.store_name(), row.found)).collect(),
    ))
}

/// Installs the local CA in the trust store with this name, as [`inspect`] returns it. Used by `rocknet doctor --fix`.
///
/// # Errors
///
/// A message with the reason why the store does not trust the CA afterwards.
pub fn install(state: &Path, store_name: &str) -> Result<String, String> {
    let found = roots(state, &[CaKind::Private], MissingCa::LeaveOut);
    let roots = found.map_err(|_| format!("the local CA in {} cannot be read", state.display()))?;
    let tools = Tools::of_process();
    let stores = all_stores(&tools);
    let rows = roots
        .iter()
        .flat_map(|root| stores.iter().map(move |store| (store, root)))
        .filter(|(store, _)| name_of_store(store.reader(), store.path()) == store_name)
        .map(|(store, root)| apply(&**store, root, TrustAction::Install));
    let mut is_found = false;
    for row in rows {
        is_found = true;
        if row.found != TrustState::Trusted {
            let why = row
                .trouble
                .unwrap_or_else(|| "it does not list the CA afterwards".to_owned());
            return Err(format!("{store_name}: {why}"));
        }
    }
    match is_found {
        true => Ok(format!("the local CA is trusted by {store_name}")),
        false => Err(format!("{store_name}: the store or the local CA is gone")),
    }
}

/// Returns the name of a store in messages.
fn name_of_store(reader: &str, path: &Path) -> String {
    format!("{reader} ({})", path.display())
}

impl StoreResult {
    fn store_name(&self) -> String {
        name_of_store(self.reader, &self.path)
    }
}

fn print_results(rows: &[StoreResult], roots: &[RootCertificate], json: bool) {
    if json {
        let state = |found: &TrustState| match found {
            TrustState::Trusted => "trusted",
            TrustState::NotTrusted => "not trusted",
            TrustState::Unknown(_) => "unknown",
        };
        let row = |row: &StoreResult| {
            let why = match &row.found {
                TrustState::Unknown(why) => Some(why),
                _ => None,
            };
            json!({
                "store": row.reader, "path": row.path, "ca": row.root, "state": state(&row.found),
                "trouble": row.trouble.as_ref().or(why),
            })
        };
        let cas: Vec<_> = roots
            .iter()
            .map(|root| json!({ "name": root.name, "file": root.file }))
            .collect();
        let rows: Vec<_> = rows.iter().map(row).collect();
        return print(format_args!("{:#}\n", json!({ "cas": cas, "stores": rows })));
    }
    print(text(rows, roots));
}

fn text(rows: &[StoreResult], roots: &[RootCertificate]) -> String {
    let mut out = String::new();
    if roots.is_empty() {
        out.push_str("There is no local CA yet: `rocknet trust` creates it.\n");
    }
    for root in roots {
        let _ = writeln!(out, "{}, {}", root.name, root.file.display());
        for row in rows.iter().filter(|row| row.root == root.name) {
            let verdict = match &row.found {
                TrustState::Trusted => "trusted".to_owned(),
                TrustState::NotTrusted => "not trusted".to_owned(),
                TrustState::Unknown(why) => format!("unknown: {why}"),
            };
            let _ = writeln!(out, "  {:9} {verdict}  ({})", row.reader, row.path.display());
            if let Some(trouble) = row.trouble.as_ref().filter(|trouble| !verdict.contains(*trouble)) {
                let _ = writeln!(out, "            {trouble}");
            }
        }
    }
    if rows.is_empty() && !roots.is_empty() {
        out.push_str("  no trust store was found on this machine: import the file above into your browser\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_name_each_store_and_its_error() {
        let der = rcgen::generate_simple_self_signed(["x".to_owned()])
            .unwrap()
            .cert
            .der()
            .clone();
        let root = RootCertificate {
            file: "/s/local/ca.pem".into(),
            der,
            name: "CA 1".to_owned(),
        };
        let row = |found, trouble: Option<&str>| StoreResult {
            reader: "system",
            path: "/b".into(),
            root: "CA 1".to_owned(),
            found,
            trouble: trouble.map(str::to_owned),
        };
        // State of the store, error of the action, and the expected lines. An error that the state contains is not
        // repeated.
        for (found, trouble, expected) in [
            (TrustState::Trusted, None, "  system    trusted  (/b)\n"),
            (
                TrustState::NotTrusted,
                Some("no sudo"),
                "  system    not trusted  (/b)\n            no sudo\n",
            ),
            (
                TrustState::Unknown("locked".to_owned()),
                Some("locked"),
                "  system    unknown: locked  (/b)\n",
            ),
        ] {
            let shown = text(&[row(found, trouble)], std::slice::from_ref(&root));
            assert_eq!(shown, format!("CA 1, /s/local/ca.pem\n{expected}"));
        }
        assert!(text(&[], &[]).contains("rocknet trust"));
    }
}
