//! Tests of configurations of several files: includes, folders and links on disk, and ten thousand files in memory.

use std::fs;
use std::path::Path;

use rocknet_config::environment::MemoryEnvironment;
use rocknet_config::{Code, ProcessEnvironment};

#[test]
fn a_file_and_its_sites_are_read_from_disk() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "rocknet.toml",
        "include = \"sites/*.toml\"\n[site.\"a.test\"]\nroot = \"www\"\n",
    );
    write("sites/b.toml", "[site.\"b.test\"]\nroot = \"../www\"\n");
    write("sites/note.txt", "no configuration");
    write("www/index.html", "hello");
    let main = dir.path().join("rocknet.toml");
    let loaded = rocknet_config::check(&main, &ProcessEnvironment).unwrap_or_else(|report| panic!("{report}"));
    let names: Vec<_> = loaded.config.sites.iter().map(|site| site.name.as_str()).collect();
    assert_eq!(names, ["a.test", "b.test"]);
    assert_eq!(loaded.config.files, [main.clone(), dir.path().join("sites/b.toml")]);
    for site in &loaded.config.sites {
        assert!(
            site.settings.root.as_ref().unwrap().join("index.html").is_file(),
            "{}",
            site.name
        );
    }

    fs::remove_dir_all(dir.path().join("www")).unwrap();
    let report = rocknet_config::check(&main, &ProcessEnvironment).unwrap_err();
    // Both sites have lost their root.
    assert_eq!(report.errors(), 2);
    assert!(report.findings.iter().all(|finding| finding.code == Code::Missing));
    let loaded = rocknet_config::load(&main, &ProcessEnvironment).unwrap();
    assert_eq!(loaded.warnings.len(), 2);

    fs::remove_file(&main).unwrap();
    let report = rocknet_config::load(&main, &ProcessEnvironment).unwrap_err();
    assert_eq!(report.findings[0].code, Code::Unreadable);
}

#[cfg(unix)]
#[test]
fn links_to_the_main_file_and_to_their_own_folder_do_not_loop() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("sites")).unwrap();
    let main = dir.path().join("rocknet.toml");
    fs::write(&main, "include = \"sites/*.toml\"\n").unwrap();
    std::os::unix::fs::symlink(&main, dir.path().join("sites/loop.toml")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("sites"), dir.path().join("sites/sites")).unwrap();
    // `sites/loop.toml` includes itself again as `sites/sites/loop.toml`, and so on, until the includes are too deep.
    let report = rocknet_config::load(&main, &ProcessEnvironment).unwrap_err();
    assert!(
        report.findings.iter().all(|finding| finding.code == Code::Include),
        "{report}"
    );
}

#[test]
fn ten_thousand_files_are_one_configuration() {
    let mut environment = MemoryEnvironment {
        any_directory: true,
        ..MemoryEnvironment::default()
    };
    environment.files.insert(
        "/etc/rocknet/rocknet.toml".into(),
        "include = \"sites/*.toml\"\n".into(),
    );
    for i in 0..10_000 {
        let text = format!("[site.\"s{i}.test\"]\nroot = \"/w\"\n");
        environment
            .files
            .insert(format!("/etc/rocknet/sites/{i}.toml").into(), text);
    }
    // The current folder of this environment is /etc/rocknet.
    let loaded = rocknet_config::load(Path::new("rocknet.toml"), &environment).unwrap();
    assert_eq!(loaded.config.sites.len(), 10_000);
    assert_eq!(loaded.config.files.len(), 10_001);
}
