//! `rocknet service` with `--root`: the files that start the service with the image, and the man page.

use std::fs;
use std::path::Path;

use crate::program::ProgramFolder;

const LINK: &str = "image/etc/systemd/system/multi-user.target.wants/rocknet.service";
const PAGE: &str = "image/usr/local/share/man/man1/rocknet.1";

#[test]
fn the_service_of_an_image_starts_with_it_until_it_is_removed() {
    let dir = ProgramFolder::new(&[]);
    // A second installation replaces the link and the page.
    for _ in 0..2 {
        let output = dir.run(&["service", "install", "--root", "image"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(output.out.contains(&format!("link {LINK} to ")), "{output:?}");
        let target = fs::read_link(dir.path().join(LINK)).unwrap();
        assert_eq!(target, Path::new("/etc/systemd/system/rocknet.service"));
        assert_eq!(dir.read(PAGE), dir.run(&["man"]).out);
    }
    let output = dir.run(&["service", "uninstall", "--root", "image"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    for path in [LINK, PAGE] {
        assert!(
            !dir.path().join(path).is_symlink() && !dir.path().join(path).exists(),
            "{path}"
        );
    }
}

#[test]
fn the_page_has_the_variables() {
    let page = ProgramFolder::new(&[]).run(&["man"]).out;
    for name in ["ROCKNET_LOG", "ROCKNET_SOCKET", "ROCKNET_BACKEND"] {
        assert!(page.contains(name), "{name}");
    }
}

#[test]
fn the_owner_is_noted_for_a_new_configuration_only() {
    let dir = ProgramFolder::new(&[]);
    // Part of the note on how to make the account `rocknet` the owner of the configuration.
    let note = "run `chown rocknet: /etc/rocknet /etc/rocknet/rocknet.toml` in the image";
    let new = dir.run(&["service", "install", "--root", "image", "--dry-run"]);
    assert!(new.code == Some(0) && new.out.contains(note), "{new:?}");
    dir.write("image/etc/rocknet/rocknet.toml", "");
    let kept = dir.run(&["service", "install", "--root", "image", "--dry-run"]);
    assert!(kept.code == Some(0) && !kept.out.contains(note), "{kept:?}");
}
