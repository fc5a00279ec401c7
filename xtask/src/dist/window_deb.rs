//! The Debian package of the desktop program.

use super::archive::{Files, gzip};
use super::contents::source;
use super::deb::{dependencies, md5sums, pack};
use super::release::Release;
use super::sbom;
use crate::Failure;

/// Files of the checkout in the package: path in the checkout, and installed path.
const SOURCES: [(&str, &str); 9] = [
    ("LICENSE-APACHE", "usr/share/doc/rocknet-gui/LICENSE-APACHE"),
    ("LICENSE-MIT", "usr/share/doc/rocknet-gui/LICENSE-MIT"),
    ("packaging/gui/copyright", "usr/share/doc/rocknet-gui/copyright"),
    (
        "packaging/gui/rocknet-gui-128.png",
        "usr/share/icons/hicolor/128x128/apps/rocknet-gui.png",
    ),
    (
        "packaging/gui/rocknet-gui-48.png",
        "usr/share/icons/hicolor/48x48/apps/rocknet-gui.png",
    ),
    (
        "packaging/gui/rocknet-gui.desktop",
        "usr/share/applications/rocknet-gui.desktop",
    ),
    (
        "packaging/gui/rocknet-gui.metainfo.xml",
        "usr/share/metainfo/invalid.rocknet.gui.metainfo.xml",
    ),
    (
        "packaging/gui/rocknet-gui.svg",
        "usr/share/icons/hicolor/scalable/apps/rocknet-gui.svg",
    ),
    (
        "packaging/gui/rocknet.rules",
        "usr/share/polkit-1/rules.d/rocknet.rules",
    ),
];

/// The manual page in the checkout.
const MANUAL: &str = "packaging/gui/rocknet-gui.1";

/// Returns the package. `release`: that of the program `rocknet-gui`.
pub fn window_deb(release: &Release) -> Result<Vec<u8>, Failure> {
    let files = files(release)?;
    pack(&control(release, &files), &files, release.time)
}

fn files(release: &Release) -> Result<Files, Failure> {
    let mut files = Files::default();
    files.add("usr/bin/rocknet-gui", 0o755, release.bytes.clone());
    for (path, installed) in SOURCES {
        files.add(installed, 0o644, source(path)?);
    }
    files.add(
        "usr/share/doc/rocknet-gui/changelog.gz",
        0o644,
        gzip(&source("CHANGELOG.md")?)?,
    );
    files.add(
        "usr/share/doc/rocknet-gui/rocknet-gui.cdx.json",
        0o644,
        sbom::sbom(release)?,
    );
    files.add("usr/share/man/man1/rocknet-gui.1.gz", 0o644, gzip(&source(MANUAL)?)?);
    Ok(files)
}

/// The toolkit draws texts with any font that fontconfig finds. `certutil` of libnss3-tools changes the stores of
/// browsers, and polkit permits members of the group `rocknet` to start the service.
fn control(release: &Release, files: &Files) -> Files {
    let mut control = Files::default();
    let description = format!(
        "Package: rocknet-gui\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: {maintainer}\n\
         Installed-Size: {size}\n\
         Depends: {depends}, rocknet (>= {upstream})\n\
         Recommends: xdg-utils, polkitd, fonts-dejavu-core | fonts-liberation, libnss3-tools\n\
         Section: web\n\
         Priority: optional\n\
         Description: window for the websites of a RockNet server\n \
         rocknet-gui adds websites, starts and stops the server, and shows its load,\n \
         its logs and its certificates. Everything that it changes is in the\n \
         configuration file, which can be edited by hand at the same time.\n",
        version = release.deb_version(),
        architecture = release.deb_architecture(),
        maintainer = release.maintainer,
        size = files.kib(),
        depends = dependencies(&release.bytes).join(", "),
        upstream = Release::VERSION,
    );
    control.add("control", 0o644, description);
    control.add("md5sums", 0o644, md5sums(files));
    control
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str) -> String {
        String::from_utf8(source(path).unwrap()).unwrap()
    }

    fn release() -> Release {
        Release {
            name: "rocknet-gui",
            program: "/unused".into(),
            bytes: b"\0GLIBC_2.34\0libX11.so.6\0".to_vec(),
            triple: "x86_64-unknown-linux-gnu",
            time: 1_700_000_000,
            maintainer: "Ann Lee <ann@example.com>".parse().unwrap(),
            revision: 2,
        }
    }

    #[test]
    fn the_package_has_what_desktops_look_for() {
        let files = files(&release()).unwrap();
        let modes: Vec<_> = files.iter().map(|(path, file)| (path, file.mode)).collect();
        for path in [
            "usr/share/applications/rocknet-gui.desktop",
            "usr/share/doc/rocknet-gui/copyright",
            "usr/share/icons/hicolor/48x48/apps/rocknet-gui.png",
            "usr/share/icons/hicolor/scalable/apps/rocknet-gui.svg",
            "usr/share/man/man1/rocknet-gui.1.gz",
            "usr/share/metainfo/invalid.rocknet.gui.metainfo.xml",
            "usr/share/polkit-1/rules.d/rocknet.rules",
        ] {
            assert!(modes.contains(&(path, 0o644)), "{path}");
        }
        assert!(modes.contains(&("usr/bin/rocknet-gui", 0o755)));
        // The bill of materials is that of this program.
        let (_, sbom) = files.iter().find(|(path, _)| path.ends_with(".cdx.json")).unwrap();
        let sbom: serde_json::Value = serde_json::from_slice(&sbom.bytes).unwrap();
        assert_eq!(sbom["metadata"]["component"]["name"], "rocknet-gui");
        let components = sbom["components"].as_array().unwrap();
        assert!(components.iter().any(|component| component["name"] == "fltk-sys"));
    }

    #[test]
    fn the_package_needs_the_server_and_the_libraries_of_the_program() {
        let release = release();
        let control = control(&release, &files(&release).unwrap());
        let (_, description) = control.iter().find(|(path, _)| *path == "control").unwrap();
        let description = String::from_utf8_lossy(&description.bytes);
        for line in [
            "Package: rocknet-gui".to_owned(),
            format!("Version: {}-2", Release::VERSION),
            format!("Depends: libc6 (>= 2.34), libx11-6, rocknet (>= {})", Release::VERSION),
        ] {
            assert!(description.lines().any(|found| found == line), "{line}: {description}");
        }
        assert!(
            description
                .lines()
                .any(|line| line.starts_with("Recommends: xdg-utils, polkitd"))
        );
        let (_, sums) = control.iter().find(|(path, _)| *path == "md5sums").unwrap();
        assert!(String::from_utf8_lossy(&sums.bytes).contains("  usr/bin/rocknet-gui\n"));
    }

    #[test]
    fn the_parts_name_each_other() {
        let entry = text("packaging/gui/rocknet-gui.desktop");
        for line in ["Exec=rocknet-gui", "Icon=rocknet-gui", "StartupWMClass=rocknet-gui"] {
            assert!(entry.lines().any(|found| found == line), "{line}");
        }
        let metadata = text("packaging/gui/rocknet-gui.metainfo.xml");
        let id = metadata
            .split_once("<id>")
            .and_then(|(_, rest)| rest.split_once("</id>"));
        let (_, installed) = SOURCES[6];
        assert_eq!(installed, format!("usr/share/metainfo/{}.metainfo.xml", id.unwrap().0));
        assert!(metadata.contains("<launchable type=\"desktop-id\">rocknet-gui.desktop</launchable>"));
        assert!(metadata.contains(&format!("<release version=\"{}\"", Release::VERSION)));
        let window = text("crates/rocknet-gui/src/view/window.rs");
        assert!(window.contains("set_xclass(\"rocknet-gui\")"));
    }

    #[test]
    fn the_manual_page_has_every_option_of_the_program() {
        let page = text(MANUAL).replace('\\', "");
        let program = text("crates/rocknet-gui/src/main.rs");
        let usage = program
            .split_once("\nOptions:\n")
            .unwrap()
            .1
            .split_once("\n\";")
            .unwrap()
            .0;
        let options = usage.split_whitespace().filter(|word| word.starts_with("--"));
        assert!(options.clone().count() >= 5);
        for option in options {
            assert!(page.contains(option), "{option}");
        }
    }
}
