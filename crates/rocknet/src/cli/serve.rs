//! `rocknet serve`: serves one folder, without a configuration.

mod flags;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use rocknet::server::StartError;
use rocknet_config::Config;
use rocknet_config::model::{Listen, Php, PhpVersion};
use rocknet_io::port_owner;
use rocknet_io::service_manager::ServiceEnvironment;
use rocknet_io::socket::{self, BindErrorKind};

use super::Failure;
use super::address_watch;
use super::launch::{AddressList, ConfigSource, ConsoleOption, LaunchOptions};
use super::running::{self, NotStarted};
pub use flags::SiteFlags;

/// Serve a folder, without a configuration
///
/// For development: on 127.0.0.1:8080, or on the next free port. A folder without an index.html is listed, and
/// where there are scripts (*.php), the newest PHP that is installed runs them. Several applications can be in
/// subfolders, each with its own index.php.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The folder to serve
    #[arg(value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    pub directory: PathBuf,
    /// Where to listen: PORT, IP:PORT, [IPv6]:PORT, :PORT for all addresses, or unix:/PATH
    #[arg(short, long, value_name = "ADDR", value_parser = listen)]
    pub listen: Option<Listen>,
    /// Let phones and other machines of the network open it: listen on all addresses, and show a QR code
    #[arg(long, conflicts_with = "listen")]
    pub lan: bool,
    #[command(flatten)]
    pub site: SiteFlags,
    /// Open the site in the browser
    #[arg(short, long)]
    pub open: bool,
    #[command(flatten)]
    pub console: ConsoleOption,
}

pub fn run(options: &Options, service: ServiceEnvironment) -> Result<(), Failure> {
    let directory = folder(&options.directory)?;
    let public = public_folder(&directory);
    let public_note = public.as_ref().map(|public| {
        let name = public.file_name().unwrap_or_default().display();
        format!("This is a project in PHP, so its public folder {name} is served.")
    });
    let directory = public.unwrap_or(directory);
    let flags = &options.site;
    flags.check(&directory, options.listen.as_ref())?;
    // On a terminal, a QR code is printed even without `--lan`, such as with `--listen :8080`. If no other machine can
    // reach the server, as on the loopback address, there is neither a list of URLs nor a code.
    let addresses = if options.lan || address_watch::prints_code() {
        AddressList::UrlsAndQrCode
    } else {
        AddressList::Urls
    };
    if let Some(version) = flags.php {
        // The port, which is not known yet, does not matter here.
        let mut config = Config::for_directory(&directory, Listen::Tcp { address: None, port: 0 });
        enable_php(&mut config, version);
        SiteFlags::check_php(&config)?;
    }
    let launch = |listen: Listen, mut notes: Vec<String>| {
        notes.extend(public_note.clone());
        let launch = LaunchOptions {
            warnings: Vec::new(),
            source: ConfigSource::ServedFolder,
            notes,
            console: options.console.console,
            open: options.open,
            predecessor: None,
            addresses,
        };
        let mut config = Config::for_directory(&directory, listen);
        flags.apply(&mut config);
        let newest = || contains_php(&directory).then_some(PhpVersion::Newest);
        if let Some(version) = flags.php.or_else(newest) {
            enable_php(&mut config, version);
        }
        (config, launch)
    };
    match &options.listen {
        Some(listen) => {
            let (config, launch) = launch(listen.clone(), Vec::new());
            running::run(config, launch, service)
        }
        None => {
            let ip = (!options.lan).then_some(LOOPBACK);
            on_next_free(service, ip, |_, listen, notes| launch(listen, notes))
        }
    }
}

/// Starts the server that `launch` configures, on the first free port from [`FIRST_PORT`] on, and serves until it is
/// stopped. `ip`: `None` for all addresses. `launch` receives the port, its listening address, and a note if the port
/// is not [`FIRST_PORT`].
pub fn on_next_free(
    mut service: ServiceEnvironment,
    ip: Option<IpAddr>,
    launch: impl Fn(u16, Listen, Vec<String>) -> (Config, LaunchOptions),
) -> Result<(), Failure> {
    let mut races = 0;
    loop {
        let free = socket::bind_next_free(ip, FIRST_PORT, MAX_PORTS_TRIED, socket::ListenOptions::default());
        // The socket of the search is closed here, because the server binds its own.
        let port = match free {
            Ok(listener) => listener.local_port().unwrap_or(FIRST_PORT),
            Err(error) => return Err(Failure::Failed(format!("cannot start: {error}"))),
        };
        let mut notes = Vec::new();
        if port != FIRST_PORT {
            let holder = port_owner::of_port(ip, FIRST_PORT);
            let holder = holder.map_or_else(|| "another program".to_owned(), |holder| holder.to_string());
            notes.push(format!(
                "Port {FIRST_PORT} is held by {holder}, so port {port} is used."
            ));
        }
        let (config, launch) = launch(port, Listen::Tcp { address: ip, port }, notes);
        match running::start(config, launch, &mut service) {
            Ok(running) => return running.serve(),
            // Another process took the port between the search and the start.
            Err(NotStarted::Start(StartError::Bind(error)))
                if matches!(error.kind, BindErrorKind::InUse(_)) && races < MAX_RACES =>
            {
                races += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the canonical path of the folder to serve, so that the displayed path is correct even if the argument has
/// `..` or links.
fn folder(path: &Path) -> Result<PathBuf, Failure> {
    let cannot = |why: &dyn std::fmt::Display| Failure::Failed(format!("cannot serve {}: {why}", path.display()));
    let whole = path.canonicalize().map_err(|error| cannot(&error))?;
    if whole.is_dir() {
        Ok(whole)
    } else {
        Err(cannot(&"it is not a folder"))
    }
}

/// Returns the public folder of a project in PHP, such as one with Laravel or Symfony: the folder with its front
/// controller. The other files of a project are private. Returns `None` if the folder is not a project, or has an index
/// file of its own.
fn public_folder(directory: &Path) -> Option<PathBuf> {
    let has = |name: &str| directory.join(name).is_file();
    if !has("composer.json") || ["index.php", "index.html", "index.htm"].into_iter().any(has) {
        return None;
    }
    let folders = ["public", "web", "webroot"].map(|name| directory.join(name));
    folders.into_iter().find(|folder| folder.join("index.php").is_file())
}

/// Returns true if the folder has PHP scripts at its top level, or applications in its subfolders: `blog/index.php`, or
/// `shop/public/index.php`.
fn contains_php(directory: &Path) -> bool {
    let mut left = MAX_ENTRIES_CHECKED;
    has_scripts(directory, MAX_APPLICATION_DEPTH, &mut left)
}

/// Returns true if a folder has PHP scripts, or a folder below it does, down to `depth` levels. `left`: number of
/// entries that may still be checked.
fn has_scripts(folder: &Path, depth: usize, left: &mut usize) -> bool {
    let mut folders = Vec::new();
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let Some(rest) = left.checked_sub(1) else { return false };
        *left = rest;
        let name = entry.file_name();
        if Path::new(&name).extension().is_some_and(|ending| ending == "php") {
            return true;
        }
        let is_private = name.as_encoded_bytes().starts_with(b".") || name == "node_modules" || name == "vendor";
        if depth > 0 && !is_private && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            folders.push(entry.path());
        }
    }
    folders.iter().any(|folder| has_scripts(folder, depth - 1, left))
}

/// Lets an installed PHP run the scripts of the served folder.
fn enable_php(config: &mut Config, version: PhpVersion) {
    for settings in config.sites.iter_mut().map(|site| &mut site.settings) {
        settings.index.insert(0, "index.php".to_owned());
        settings.php = Some(Php::Managed {
            version,
            settings: Box::default(),
            // The PHP manager sets the path before php-fpm starts.
            socket: PathBuf::new(),
        });
    }
}

/// Maximum number of directory entries that are checked for scripts, so that a huge folder does not delay the start.
const MAX_ENTRIES_CHECKED: usize = 10_000;

/// Maximum depth of an application below the served folder: `shop/public/index.php`.
const MAX_APPLICATION_DEPTH: usize = 2;

/// Parses a listening address. A port alone means the loopback address, because work in progress must not be visible in
/// the network unless the user requests it. Also accepts `localhost:PORT`, and `*:PORT`, which means `:PORT`.
fn listen(written: &str) -> Result<Listen, String> {
    let port = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse().ok())
            .flatten()
    };
    if let Some(path) = written.strip_prefix("unix:") {
        return match path {
            "" => Err("write the path of a socket after `unix:`".to_owned()),
            path => std::path::absolute(path)
                .map(Listen::Unix)
                .map_err(|error| error.to_string()),
        };
    }
    if let Some(port) = port(written) {
        return Ok(Listen::Tcp {
            address: Some(LOOPBACK),
            port,
        });
    }
    if let Some(port) = written.strip_prefix("*:").or(written.strip_prefix(':')).and_then(port) {
        return Ok(Listen::Tcp { address: None, port });
    }
    let socket: SocketAddr = written
        .replacen("localhost:", "127.0.0.1:", 1)
        .parse()
        .map_err(|_| "write PORT, IP:PORT, [IPv6]:PORT, :PORT for all addresses, or unix:/PATH".to_owned())?;
    Ok(Listen::Tcp {
        address: Some(socket.ip()),
        port: socket.port(),
    })
}

/// Address that is used if `--listen` is missing, or names only a port.
pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// First port that is tried. Unprivileged users may bind it.
const FIRST_PORT: u16 = 8080;

/// Maximum number of ports tried. A user with a hundred servers can be expected to choose the port.
const MAX_PORTS_TRIED: u16 = 100;

/// Maximum number of lost races for a port before the start fails.
const MAX_RACES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_folder_of_a_project_is_found() {
        for (files, expected) in [
            (&["composer.json", "public/index.php"][..], Some("public")),
            (&["composer.json", "web/index.php", "vendor/a.php"], Some("web")),
            (&["composer.json", "public/index.php", "index.php"], None),
            (&["public/index.php"], None),
            (&["composer.json", "src/index.php"], None),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            for file in files {
                let path = folder.path().join(file);
                std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
                std::fs::write(path, "").expect("a file");
            }
            let found = public_folder(folder.path());
            assert_eq!(found, expected.map(|name| folder.path().join(name)), "{files:?}");
        }
    }

    #[test]
    fn scripts_are_found_in_applications_below_the_folder() {
        for (file, expected) in [
            ("index.php", true),
            ("blog/index.php", true),
            ("shop/public/index.php", true),
            ("a/b/c/index.php", false),
            (".git/index.php", false),
            ("vendor/index.php", false),
            ("shop/public/index.html", false),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            std::fs::write(path, "").expect("a file");
            assert_eq!(contains_php(folder.path()), expected, "{file}");
        }
    }

    #[test]
    fn listen_addresses_are_parsed() {
        fn check(written: &str, expected: Option<&Listen>) {
            assert_eq!(listen(written).ok().as_ref(), expected, "{written:?}");
        }
        let tcp = |ip: &str, port| {
            Some(Listen::Tcp {
                address: Some(ip.parse().unwrap()),
                port,
            })
        };
        // Value of `--listen`, and the address; `None` if the value is refused.
        for (written, expected) in [
            ("8000", tcp("127.0.0.1", 8000)),
            ("0", tcp("127.0.0.1", 0)),
            (
                ":8000",
                Some(Listen::Tcp {
                    address: None,
                    port: 8000,
                }),
            ),
            (
                "*:8000",
                Some(Listen::Tcp {
                    address: None,
                    port: 8000,
                }),
            ),
            ("0.0.0.0:80", tcp("0.0.0.0", 80)),
            ("localhost:81", tcp("127.0.0.1", 81)),
            ("[::1]:8000", tcp("::1", 8000)),
            ("unix:/run/x.sock", Some(Listen::Unix("/run/x.sock".into()))),
            ("", None),
            ("+80", None),
            ("65536", None),
            ("unix:", None),
            ("example.com:80", None),
            ("::1:80", None),
            ("127.0.0.1", None),
        ] {
            check(written, expected.as_ref());
        }
    }
}
