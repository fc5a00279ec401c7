//! Lists the programs of other projects that tasks run, each with the reason, and installs or names missing programs.

use crate::Failure;
use crate::command::{cargo, find, output, run};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Purpose for which a program is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Test,
    Bench,
    Conform,
    /// The build of the desktop program.
    Window,
    /// The step of `conform` that uses the desktop program by keyboard.
    Desktop,
    /// The steps of `conform` that need whole applications.
    Applications,
    /// The step of `conform` that scrapes the metrics.
    Metrics,
    /// The step of `conform` that boots a Debian to install the package.
    Machines,
    /// The servers with which the bench compares RockNet, and other programs that it can do without.
    Competitors,
}

/// A program of another project and its Debian package.
pub struct Package {
    /// Name of the program on the path. For a package without a program, the full path of one of its files.
    program: &'static str,
    /// Name of the Debian package.
    package: &'static str,
    purposes: &'static [Purpose],
    reason: &'static str,
}

const fn package(
    program: &'static str,
    package: &'static str,
    purposes: &'static [Purpose],
    reason: &'static str,
) -> Package {
    Package {
        program,
        package,
        purposes,
        reason,
    }
}

use Purpose::{Applications, Bench, Competitors, Conform, Desktop, Machines, Metrics, Test, Window};

/// Every program that a task runs, except the Rust toolchain and its linker, which every task needs.
const PACKAGES: &[Package] = &[
    package(
        "curl",
        "curl",
        &[Test, Bench, Conform],
        "the first client of every newcomer",
    ),
    package("wrk", "wrk", &[Test, Bench, Conform], "keep-alive and pipelined load"),
    package(
        "ab",
        "apache2-utils",
        &[Test, Bench, Conform],
        "a connection per request with HTTP/1.0",
    ),
    package(
        "nghttp",
        "nghttp2-client",
        &[Test, Bench, Conform],
        "the client that accepts pushes, and h2load",
    ),
    package(
        "certutil",
        "libnss3-tools",
        &[Test, Desktop],
        "changes the stores of browsers, which `rocknet trust` does",
    ),
    package(
        "php-fpm8.2",
        "php8.2-fpm",
        &[Test, Conform, Desktop, Applications, Competitors],
        "runs PHP scripts",
    ),
    package("php-cgi8.2", "php8.2-cgi", &[Test], "runs PHP scripts without php-fpm"),
    package(
        "uwsgi_python3",
        "uwsgi-plugin-python3",
        &[Test],
        "runs Python applications for FastCGI, SCGI and uwsgi",
    ),
    package(
        "python3",
        "python3",
        &[Test],
        "runs the applications of the examples, and CGI scripts",
    ),
    package("git", "git", &[Test], "clones and pushes over HTTP by its CGI program"),
    package(
        "fcgiwrap",
        "fcgiwrap",
        &[Test],
        "a FastCGI application with one process",
    ),
    package(
        "gcc",
        "gcc",
        &[Test],
        "builds the controllers of the tests, and the example in C",
    ),
    package(
        "g++",
        "g++",
        &[Test, Conform, Window],
        "builds the toolkit of the window, the example of a controller in C++, and BoringSSL for the client h3i",
    ),
    package(
        "make",
        "make",
        &[Test, Conform, Window],
        "builds the toolkit of the window, and BoringSSL for the client h3i",
    ),
    package(
        "cmake",
        "cmake",
        &[Test, Conform, Window],
        "builds the toolkit of the window, and BoringSSL for the client h3i",
    ),
    package(
        "pkg-config",
        "pkg-config",
        &[Test, Window],
        "finds the libraries of the window",
    ),
    package(
        "/usr/include/pango-1.0/pango/pango.h",
        "libpango1.0-dev",
        &[Test, Window],
        "draws the texts of the window",
    ),
    package(
        "/usr/include/X11/extensions/Xinerama.h",
        "libxinerama-dev",
        &[Test, Window],
        "finds the screens of the window",
    ),
    package(
        "/usr/include/X11/Xcursor/Xcursor.h",
        "libxcursor-dev",
        &[Test, Window],
        "draws the pointer of the window",
    ),
    package(
        "Xvfb",
        "xvfb",
        &[Test, Desktop],
        "a display in memory, for the tests of the window",
    ),
    package("xdotool", "xdotool", &[Test, Desktop], "types and clicks in the window"),
    package(
        "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
        "fonts-dejavu-core",
        &[Test, Desktop],
        "the font of the window in tests",
    ),
    package(
        "import",
        "imagemagick",
        &[Test, Desktop],
        "takes pictures of the window",
    ),
    package(
        "tesseract",
        "tesseract-ocr",
        &[Desktop],
        "reads the texts in pictures of the window",
    ),
    package(
        "clang",
        "clang",
        &[Conform],
        "reads the headers of BoringSSL for the client h3i",
    ),
    package("go", "golang-go", &[Test], "builds the example of a controller in Go"),
    package("strace", "strace", &[Test, Bench], "counts system calls per request"),
    package(
        "chromium",
        "chromium",
        &[Test, Conform, Competitors],
        "the browser that loads the pages, headless",
    ),
    package(
        "openssl",
        "openssl",
        &[Bench],
        "creates the certificate of the TLS rows",
    ),
    package("valgrind", "valgrind", &[Bench], "counts instructions per request"),
    package(
        "ip",
        "iproute2",
        &[Competitors],
        "connects the network namespaces of the bench",
    ),
    package("taskset", "util-linux", &[Bench], "gives server and load a core each"),
    package(
        "pip3",
        "python3-pip",
        &[Conform],
        "installs Python's HPACK, with which RockNet's is compared, and servers in Python",
    ),
    package(
        "node",
        "nodejs",
        &[Conform, Applications],
        "an upstream, and tests of caches",
    ),
    package(
        "npm",
        "npm",
        &[Conform],
        "installs axe-core, which judges the views of the dashboard, and tests of caches",
    ),
    package(
        "/usr/share/nodejs/ws/package.json",
        "node-ws",
        &[Applications],
        "WebSocket in the upstream for Node",
    ),
    package(
        "slowhttptest",
        "slowhttptest",
        &[Conform],
        "slow heads, bodies, ranges and readers",
    ),
    package(
        "/usr/share/wordpress/wp-login.php",
        "wordpress",
        &[Applications],
        "the application of most PHP sites",
    ),
    package(
        "/usr/share/wordpress/wp-content/themes/twentytwentythree/theme.json",
        "wordpress-theme-twentytwentythree",
        &[Applications],
        "the theme of WordPress",
    ),
    package(
        "/usr/share/phpmyadmin/index.php",
        "phpmyadmin",
        &[Applications],
        "a PHP application that logs in with MariaDB",
    ),
    package(
        "/usr/share/php/Illuminate/autoload.php",
        "php-laravel-framework",
        &[Test, Conform],
        "the framework of many PHP applications",
    ),
    package(
        "/usr/share/php/Symfony/Bundle/FrameworkBundle/autoload.php",
        "php-symfony-framework-bundle",
        &[Test, Conform],
        "another framework of many PHP applications",
    ),
    package(
        "/usr/share/php/Symfony/Component/Security/Csrf/autoload.php",
        "php-symfony-security-csrf",
        &[Test, Conform],
        "the tokens of forms of Symfony",
    ),
    package(
        "mariadbd",
        "mariadb-server-core",
        &[Applications],
        "the database of the applications, without the system's service",
    ),
    package(
        "/var/lib/dpkg/info/php.list",
        "php",
        &[Applications],
        "satisfies a dependency of WordPress without Apache",
    ),
    package(
        "/usr/share/php8.2-mysql/mysql/mysqli.ini",
        "php8.2-mysql",
        &[Applications],
        "connects PHP to the database",
    ),
    package(
        "/usr/share/php8.2-gd/gd/gd.ini",
        "php8.2-gd",
        &[Applications],
        "scales uploaded pictures",
    ),
    package(
        "nginx",
        "nginx",
        &[Test, Competitors, Applications],
        "an upstream, and a server to compare with",
    ),
    package(
        "haproxy",
        "haproxy",
        &[Test, Competitors],
        "a proxy in front of the server and as its upstream, and a server to compare with",
    ),
    package("varnishd", "varnish", &[Competitors], "a cache to compare with"),
    package(
        "prometheus",
        "prometheus",
        &[Metrics],
        "scrapes the metrics, and checks them",
    ),
    package(
        "debootstrap",
        "debootstrap",
        &[Machines],
        "installs the Debian in which the package is tested",
    ),
    package(
        "systemd-nspawn",
        "systemd-container",
        &[Machines],
        "boots the Debian in which the package is tested",
    ),
    package("h2o", "h2o", &[Competitors], "a server to compare with"),
    package("apache2", "apache2-bin", &[Competitors], "a server to compare with"),
    package("lighttpd", "lighttpd", &[Competitors], "a server to compare with"),
];

/// Installs missing programs if this process is root on Debian; otherwise names them and fails.
pub fn require(purpose: Purpose) -> Result<(), Failure> {
    let missing: Vec<_> = PACKAGES
        .iter()
        .filter(|entry| entry.purposes.contains(&purpose) && find(entry.program).is_none())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    for entry in &missing {
        println!("missing: {} ({}): {}", entry.program, entry.package, entry.reason);
    }
    let names: Vec<_> = missing.iter().map(|entry| entry.package).collect();
    let line = format!("apt-get install --no-install-recommends -y {}", names.join(" "));
    if find("apt-get").is_none() {
        let programs: Vec<_> = missing.iter().map(|entry| entry.program).collect();
        return Err(format!(
            "install these programs with your system's package manager: {}",
            programs.join(", ")
        )
        .into());
    }
    if !is_root() {
        return Err(format!("programs are missing: run this as root, then try again:\n  {line}").into());
    }
    println!("{line}");
    let _quiet = NoServices::begin();
    // A fresh image has no package lists yet, so they are updated if the installation fails.
    install(&names).or_else(|_| {
        output(Command::new("apt-get").args(["update", "-q"]))?;
        install(&names)
    })
}

/// Answers to the questions that packages ask during installation, in debconf's format: do not create a database in the
/// system, and configure no web server.
const DEBCONF_ANSWERS: &[(&str, &str)] = &[(
    "phpmyadmin",
    "phpmyadmin phpmyadmin/dbconfig-install boolean false
phpmyadmin phpmyadmin/reconfigure-webserver multiselect
",
)];

/// Tools that a minimal installation of Rust lacks: the cargo command, and the component of rustup.
const COMPONENTS: &[(&str, &str)] = &[("fmt", "rustfmt"), ("clippy", "clippy")];

/// Installs missing components of the toolchain with rustup. Without rustup, it names the first one and fails.
pub fn require_components() -> Result<(), Failure> {
    for (command, component) in COMPONENTS {
        if output(cargo().args([command, "--version"])).is_ok() {
            continue;
        }
        if find("rustup").is_none() {
            return Err(format!(
                "cargo {command} is missing: install {component} from the source of your Rust toolchain"
            )
            .into());
        }
        run(Command::new("rustup").args(["component", "add", component]))?;
    }
    Ok(())
}

/// Installs programs as `require` does, but prints a failure and continues, because the task can run without them.
pub fn install_optional(purpose: Purpose) {
    if let Err(failure) = require(purpose) {
        println!("continuing without these programs: {failure}");
    }
}

fn install(names: &[&str]) -> Result<(), Failure> {
    for (package, answers) in DEBCONF_ANSWERS {
        if names.contains(package) {
            preseed(answers)?;
        }
    }
    let mut apt = Command::new("apt-get");
    // Another installation may hold the lock, such as the first updates of a fresh machine.
    apt.args(["-o", "DPkg::Lock::Timeout=300"])
        .args(["install", "--no-install-recommends", "-y", "-q"])
        .args(names)
        .env("DEBIAN_FRONTEND", "noninteractive");
    output(&mut apt).map(drop)
}

fn preseed(lines: &str) -> Result<(), Failure> {
    let mut debconf = Command::new("debconf-set-selections").stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = debconf.stdin.take() {
        input.write_all(lines.as_bytes())?;
    }
    let status = debconf.wait()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`debconf-set-selections` failed ({status})").into())
    }
}

pub fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// While this value exists, newly installed services are not started, because a server on port 80 would disturb tests.
struct NoServices {
    /// True if this value has written the policy file, and therefore removes it.
    written: bool,
}

impl NoServices {
    const POLICY: &str = "/usr/sbin/policy-rc.d";

    fn begin() -> Self {
        // 101 is Debian's code for "forbidden by policy". An existing policy stays unchanged.
        let written = !Path::new(Self::POLICY).exists() && fs::write(Self::POLICY, "#!/bin/sh\nexit 101\n").is_ok();
        if written {
            let _ = run(Command::new("chmod").args(["755", Self::POLICY]));
        }
        Self { written }
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.written {
            let _ = fs::remove_file(Self::POLICY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_program_is_listed_once_with_a_reason_and_a_purpose() {
        let mut seen = HashSet::new();
        for entry in PACKAGES {
            assert!(seen.insert(entry.program), "{} is listed twice", entry.program);
            assert!(
                !entry.reason.is_empty() && !entry.purposes.is_empty(),
                "{}",
                entry.program
            );
        }
    }
}
