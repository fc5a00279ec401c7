//! The Debian package: its files, their description, and the scripts that dpkg runs.

use super::archive::{Files, ar, gzip, md5, tar_gz};
use super::contents::{Contents, source};
use super::elf;
use super::release::Release;
use crate::Failure;

/// Files of the checkout in the package: path in the checkout, and installed path.
const SOURCES: [(&str, &str); 10] = [
    ("LICENSE-APACHE", "usr/share/doc/rocknet/LICENSE-APACHE"),
    ("LICENSE-MIT", "usr/share/doc/rocknet/LICENSE-MIT"),
    ("packaging/debian/copyright", "usr/share/doc/rocknet/copyright"),
    (
        "packaging/grafana/rocknet.json",
        "usr/share/doc/rocknet/examples/grafana.json",
    ),
    ("packaging/index.html", "usr/share/rocknet/index.html"),
    ("packaging/rocknet.service", "usr/lib/systemd/system/rocknet.service"),
    ("packaging/rocknet.sysusers", "usr/lib/sysusers.d/rocknet.conf"),
    ("packaging/rocknet.toml", CONFIGURATION),
    (
        "packaging/rocknet.socket",
        "usr/share/doc/rocknet/examples/rocknet.socket",
    ),
    ("packaging/scripts.conf", "usr/share/doc/rocknet/examples/scripts.conf"),
];

/// The file that an upgrade replaces only if the operator has not changed it.
const CONFIGURATION: &str = "etc/rocknet/rocknet.toml";

/// Scripts that dpkg runs.
const SCRIPTS: [&str; 4] = ["postinst", "postrm", "preinst", "prerm"];

pub fn deb(release: &Release, contents: &Contents) -> Result<Vec<u8>, Failure> {
    let files = files(release, contents)?;
    let control = control(release, &files)?;
    pack(&control, &files, release.time)
}

/// Returns a Debian package. `control`: its description and scripts. `files`: the files that it installs.
pub fn pack(control: &Files, files: &Files, time: u64) -> Result<Vec<u8>, Failure> {
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tar_gz(control, "./", time)?),
        ("data.tar.gz", tar_gz(files, "./", time)?),
    ];
    Ok(ar(&members, time))
}

fn files(release: &Release, contents: &Contents) -> Result<Files, Failure> {
    let mut files = Files::default();
    files.add("usr/bin/rocknet", 0o755, release.bytes.clone());
    for (path, installed) in SOURCES {
        files.add(installed, 0o644, source(path)?);
    }
    files.add(
        "usr/share/doc/rocknet/changelog.gz",
        0o644,
        gzip(&source("CHANGELOG.md")?)?,
    );
    files.add("usr/share/doc/rocknet/rocknet.cdx.json", 0o644, contents.sbom.clone());
    for (name, page) in &contents.pages {
        files.add(format!("usr/share/man/man1/{name}.gz"), 0o644, gzip(page.as_bytes())?);
    }
    for (shell, script) in &contents.completions {
        files.add(completion_path(shell), 0o644, script.as_str());
    }
    Ok(files)
}

/// Returns the path at which Debian's shells look for completions.
fn completion_path(shell: &str) -> &'static str {
    match shell {
        "fish" => "usr/share/fish/vendor_completions.d/rocknet.fish",
        "zsh" => "usr/share/zsh/vendor-completions/_rocknet",
        _ => "usr/share/bash-completion/completions/rocknet",
    }
}

fn control(release: &Release, files: &Files) -> Result<Files, Failure> {
    let mut control = Files::default();
    let description = format!(
        "Package: rocknet\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: {maintainer}\n\
         Installed-Size: {size}\n\
         Depends: {depends}, init-system-helpers, passwd\n\
         Recommends: ca-certificates\n\
         Suggests: php-fpm\n\
         Section: httpd\n\
         Priority: optional\n\
         Provides: httpd\n\
         Description: web server for HTTP/1.1, HTTP/2 and HTTP/3\n \
         RockNet serves folders, PHP and other applications, and forwards requests to\n \
         upstream servers. Sites with a public name get certificates by ACME.\n",
        version = release.deb_version(),
        maintainer = release.maintainer,
        architecture = release.deb_architecture(),
        size = files.kib(),
        depends = dependencies(&release.bytes).join(", "),
    );
    control.add("control", 0o644, description);
    control.add("conffiles", 0o644, format!("/{CONFIGURATION}\n"));
    control.add("md5sums", 0o644, md5sums(files));
    for script in SCRIPTS {
        control.add(script, 0o755, source(&format!("packaging/debian/{script}"))?);
    }
    Ok(control)
}

/// Returns the digests by which `dpkg --verify` finds changed files. Conffiles are left out, because dpkg has their
/// digests elsewhere.
pub fn md5sums(files: &Files) -> String {
    files
        .iter()
        .filter(|(path, _)| *path != CONFIGURATION)
        .map(|(path, file)| format!("{}  {path}\n", md5(&file.bytes)))
        .collect()
}

/// Shared libraries that the programs may need, and their Debian packages. glibc has its own rule.
const LIBRARIES: [(&str, &str); 15] = [
    ("libX11.so.6", "libx11-6"),
    ("libXcursor.so.1", "libxcursor1"),
    ("libXext.so.6", "libxext6"),
    ("libXfixes.so.3", "libxfixes3"),
    ("libXft.so.2", "libxft2"),
    ("libXinerama.so.1", "libxinerama1"),
    ("libXrender.so.1", "libxrender1"),
    ("libcairo.so.2", "libcairo2"),
    ("libfontconfig.so.1", "libfontconfig1"),
    ("libgcc_s.so.1", "libgcc-s1"),
    ("libgobject-2.0.so.0", "libglib2.0-0"),
    ("libpango-1.0.so.0", "libpango-1.0-0"),
    ("libpangocairo-1.0.so.0", "libpangocairo-1.0-0"),
    ("libpangoxft-1.0.so.0", "libpangoxft-1.0-0"),
    ("libstdc++.so.6", "libstdc++6"),
];

/// Beginnings of the names of glibc's libraries.
const OF_GLIBC: [&str; 6] = ["ld-linux", "libc.", "libdl.", "libm.", "libpthread.", "librt."];

/// Fails if the program needs a shared library whose package is not known.
pub fn check_libraries(program: &[u8]) -> Result<(), Failure> {
    for library in elf::needed(program)? {
        let is_known = LIBRARIES.iter().any(|(name, _)| *name == library)
            || OF_GLIBC.iter().any(|beginning| library.starts_with(beginning));
        if !is_known {
            return Err(format!("the program needs {library}: add its package to LIBRARIES of dist/deb.rs").into());
        }
    }
    Ok(())
}

/// Returns the packages of the shared libraries that the program loads, glibc with the version of its newest symbol.
pub fn dependencies(program: &[u8]) -> Vec<String> {
    let newest = words(program, b"GLIBC_2.")
        .filter_map(|rest| rest.parse::<u32>().ok())
        .max();
    let mut all: Vec<String> = newest.iter().map(|minor| format!("libc6 (>= 2.{minor})")).collect();
    for (library, package) in LIBRARIES {
        if words(program, library.as_bytes()).next().is_some() {
            all.push(package.to_owned());
        }
    }
    all
}

/// Returns the digits after each occurrence of `mark` in the program.
fn words<'a>(program: &'a [u8], mark: &'a [u8]) -> impl Iterator<Item = &'a str> {
    let found = program
        .windows(mark.len())
        .enumerate()
        .filter(move |(_, window)| *window == mark);
    found.map(move |(at, _)| {
        let rest = &program[at + mark.len()..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(&rest[..digits]).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_the_names_of_symbols_and_libraries() {
        let rows: [(&[u8], &[&str]); 4] = [
            (
                b"\0GLIBC_2.2.5\0GLIBC_2.34\0libgcc_s.so.1\0GLIBC_2.9\0",
                &["libc6 (>= 2.34)", "libgcc-s1"],
            ),
            (b"\0libX11.so.6\0libpango-1.0.so.0\0", &["libx11-6", "libpango-1.0-0"]),
            (b"\0GLIBC_2.17\0GLIBC_PRIVATE\0", &["libc6 (>= 2.17)"]),
            (b"static", &[]),
        ];
        for (program, expected) in rows {
            assert_eq!(dependencies(program), expected);
        }
    }

    #[test]
    fn the_libraries_of_this_program_are_known() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        check_libraries(&own).unwrap();
    }
}
