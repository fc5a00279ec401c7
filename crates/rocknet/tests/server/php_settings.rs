//! Settings of the php-fpm that RockNet starts: `ini`, `env`, `workers`, and which sites share a php-fpm.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use super::support::running::site;
use super::support::{Folder, Running};

const SERVER: &str = "[server]\nworkers = 1\nstate = \"state\"\nevents = { wait = \"20ms\", connections = 16 }\n";

/// Starts a server with these keys of its site, which may be followed by further tables.
fn started(keys: &str) -> Running {
    let folder = Folder::with(&[
        ("www/master.php", "<?php echo posix_getppid();"),
        ("www/ini.php", "<?php echo ini_get($_GET['name']);"),
        ("www/env.php", "<?php echo json_encode(getenv($_GET['name']));"),
        (
            "www/change.php",
            "<?php $name = $_GET['name']; var_dump(@ini_set($name, '0')); echo ini_get($name);",
        ),
        (
            "www/opcache.php",
            "<?php echo opcache_get_configuration()['directives']['opcache.memory_consumption'];",
        ),
        (
            "www/span.php",
            "<?php $begun = hrtime(true); usleep(300000); echo $begun, ' ', hrtime(true);",
        ),
    ]);
    fs::set_permissions(folder.path(""), fs::Permissions::from_mode(0o755)).expect("an open folder");
    Running::start(folder, &format!("{SERVER}{}", site(keys)))
}

#[test]
fn scripts_get_the_settings_of_their_site() {
    // Characters that end a value, a line or a section of a pool file, or expand as a variable.
    let odd = "a\"b;c${HOME}$d\\\\e[x] = y #";
    let keys = format!(
        "[site.default.php]\nworkers = 3\nidle = \"1m\"\n[site.default.php.ini]\nmemory_limit = \"77M\"\n\
         display_errors = true\nprecision = 9\nerror_append_string = '{odd}'\nerror_prepend_string = \"it's\"\n\
         \"opcache.memory_consumption\" = 99\n\"opcache.revalidate_freq\" = 7\n\"opcache.validate_timestamps\" = \
         true\n[site.default.php.env]\nODD = '{odd}'\nQUOTE = \"it's\"\n\
         HOME = \"/elsewhere\"\nLD_PRELOAD = \"/none.so\"\n"
    )
    .replace("${", "$${");
    let server = started(&keys);
    let ini = |name: &str| server.get(&format!("/ini.php?name={name}")).text();
    for (name, expected) in [
        ("memory_limit", "77M"),
        ("display_errors", "1"),
        ("precision", "9"),
        ("error_append_string", odd),
        ("error_prepend_string", "it's"),
        // The default of `body_size`, as without settings.
        ("post_max_size", "104857600"),
    ] {
        assert_eq!(ini(name), expected, "{name}");
    }
    assert_eq!(server.get("/opcache.php").text(), (99 << 20).to_string());
    for (name, value) in [
        ("memory_limit", "77M"),
        ("opcache.memory_consumption", "99"),
        ("opcache.revalidate_freq", "7"),
        ("opcache.validate_timestamps", "1"),
    ] {
        let found = server.get(&format!("/change.php?name={name}")).text();
        assert_eq!(found, format!("bool(false)\n{value}"), "{name}");
    }
    let env = |name: &str| server.get(&format!("/env.php?name={name}")).text();
    let json = |text: &str| serde_json::to_string(text).expect("JSON").replace('/', "\\/");
    for (name, expected) in [
        ("ODD", odd),
        ("QUOTE", "it's"),
        ("HOME", "/elsewhere"),
        ("LD_PRELOAD", "/none.so"),
    ] {
        assert_eq!(env(name), json(expected), "{name}");
    }
    for name in ["ROCKNET_ENV_ODD", "CARGO", "OTHER"] {
        assert_eq!(env(name), "false", "{name}");
    }
}

#[test]
fn sites_with_equal_settings_share_a_php_fpm() {
    let own = "php = { workers = 2, env = { A = \"1\" } }";
    let route =
        |path: &str, php: &str| format!("[site.default.route.\"{path}/*\"]\nfallback = \"/master.php\"\n{php}\n");
    let other = "php = { workers = 3 }";
    let keys = [
        "php = true\n".to_owned(),
        route("/plain", "php = { version = \"auto\" }"),
        route("/one", own),
        route("/same", own),
        route("/other", other),
        format!(
            "[site.\"z.test\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"www\"\nfallback = \"/master.php\"\n{own}\n"
        ),
    ];
    let server = started(&keys.concat());
    let master = |path: &str| server.get(path).text();
    let plain = master("/master.php");
    assert_eq!(master("/plain/x"), plain);
    let one = master("/one/x");
    assert_eq!(master("/same/x"), one);
    let other = master("/other/x");
    assert_eq!(server.fetch("GET /x", &["Host: z.test"]).text(), one);
    assert!(plain != one && one != other && other != plain, "{plain} {one} {other}");
    let mut names: Vec<String> = server
        .server()
        .php()
        .report()
        .into_iter()
        .map(|pool| pool.name)
        .collect();
    names.sort();
    let version = names[0].clone();
    assert_eq!(
        names,
        [
            version.clone(),
            format!("{version}/default"),
            format!("{version}/default#2")
        ]
    );
    // A name selects one pool.
    assert_eq!(server.server().php().restart(&format!("{version}/default")), 1);
}

#[test]
fn the_number_of_processes_is_limited() {
    let server = started("php = { workers = 1 }");
    let spans = thread::scope(|scope| {
        let requests = [(); 3].map(|()| scope.spawn(|| server.get("/span.php").text()));
        requests.map(|request| request.join().expect("a response"))
    });
    let mut spans = spans.map(|text| {
        let (begun, ended) = text.split_once(' ').unwrap_or_else(|| panic!("{text}"));
        (
            begun.parse::<u64>().expect("a time"),
            ended.parse::<u64>().expect("a time"),
        )
    });
    spans.sort_unstable();
    assert!(spans.windows(2).all(|two| two[0].1 <= two[1].0), "{spans:?}");
}
