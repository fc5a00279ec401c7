//! Tests what a Linux process can still do after it has dropped the privileges of root, or has denied itself system
//! calls.

use std::env;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use rocknet_io::confined_fs::{OpenError, Root, Symlinks};
use rocknet_io::privileges::{User, drop_to, is_root};
use rocknet_io::sandbox;
use rocknet_io::socket::{Address, BindErrorKind, ListenOptions, Listener};
use rocknet_testing::{Need, skip};
use rustix::thread::{CapabilitySet, capabilities};

/// Name and function of each case. Each case runs in its own process.
const CASES: [(&str, fn()); 6] = [
    ("becomes_the_user_permanently", becomes_the_user_permanently),
    (
        "keeps_only_the_capability_for_low_ports",
        keeps_only_the_capability_for_low_ports,
    ),
    (
        "started_programs_have_no_capabilities",
        started_programs_have_no_capabilities,
    ),
    ("denied_system_calls_fail", denied_system_calls_fail),
    ("files_of_others_are_forbidden", files_of_others_are_forbidden),
    (
        "denied_ports_and_socket_files_are_reported",
        denied_ports_and_socket_files_are_reported,
    ),
];
/// Environment variable that names the case to run in the process.
const CASE: &str = "ROCKNET_TEST_PRIVILEGES";
/// Environment variable that names a directory for the case. The parent process creates and removes the directory,
/// because the case itself has no permission to do so.
const DIRECTORY: &str = "ROCKNET_TEST_DIRECTORY";

/// Runs every case in a child process. In such a child, runs the case that [`CASE`] names.
pub fn run() -> ExitCode {
    if let Ok(case) = env::var(CASE) {
        let (_, run) = CASES
            .into_iter()
            .find(|(name, _)| *name == case)
            .expect("a case of that name");
        run();
        return ExitCode::SUCCESS;
    }
    if env::args().any(|argument| argument == "--list") {
        CASES.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    if !is_root() {
        skip(Need::Root, "the test drops the privileges of root");
        return ExitCode::SUCCESS;
    }
    let mut failed = false;
    for (name, _) in CASES {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let status = Command::new(env::current_exe().unwrap())
            .env(CASE, name)
            .env(DIRECTORY, directory.path())
            .status()
            .unwrap();
        println!("test {name} ... {}", if status.success() { "ok" } else { "FAILED" });
        failed |= !status.success();
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Returns the directory that the parent process has created for the case.
fn directory() -> PathBuf {
    env::var_os(DIRECTORY).unwrap().into()
}

/// Returns a user that is not in `/etc/passwd` and owns no file on the machine.
fn test_user() -> User {
    User::find("64123:64124").unwrap()
}

/// The arguments are invalid, so that the calls change nothing without the filter either.
#[allow(unsafe_code)]
fn denied_system_calls_fail() {
    let calls = [
        ("mount", libc::SYS_mount),
        ("pivot_root", libc::SYS_pivot_root),
        ("setns", libc::SYS_setns),
        ("ptrace", libc::SYS_ptrace),
        ("process_vm_readv", libc::SYS_process_vm_readv),
        ("bpf", libc::SYS_bpf),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("keyctl", libc::SYS_keyctl),
        ("finit_module", libc::SYS_finit_module),
        ("kexec_load", libc::SYS_kexec_load),
        ("swapon", libc::SYS_swapon),
        ("io_uring_setup", libc::SYS_io_uring_setup),
    ];
    let error_of = |call: libc::c_long| {
        // SAFETY: all arguments are numbers that are no valid address, descriptor or process.
        let result = unsafe { libc::syscall(call, -1i64, -1i64, -1i64, -1i64, -1i64) };
        assert_eq!(result, -1);
        std::io::Error::last_os_error().raw_os_error()
    };
    for (name, call) in calls {
        assert_ne!(error_of(call), Some(libc::EPERM), "{name} without the filter");
    }
    // `false` denies io_uring too.
    sandbox::deny_system_calls(false).unwrap();
    for (name, call) in calls {
        assert_eq!(error_of(call), Some(libc::EPERM), "{name}");
    }
    assert_eq!(error_of(libc::SYS_clone3), Some(libc::ENOSYS));
    // SAFETY: the call creates no process, because the filter denies its flags.
    let cloned = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD, 0, 0, 0, 0) };
    assert_eq!(
        (cloned, std::io::Error::last_os_error().raw_os_error()),
        (-1, Some(libc::EPERM))
    );
    // Threads and programs still start.
    std::thread::spawn(|| ()).join().unwrap();
    assert!(Command::new("true").status().unwrap().success());
}

fn becomes_the_user_permanently() {
    let user = User {
        groups: vec![64_124, 64_125],
        home: None,
        ..test_user()
    };
    drop_to(&user).unwrap();
    assert!(!is_root());
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    for line in [
        "Uid:\t64123\t64123\t64123\t64123",
        "Gid:\t64124\t64124\t64124\t64124",
        "Groups:\t64124 64125",
        "NoNewPrivs:\t1",
        "CapInh:\t0000000000000000",
        "CapAmb:\t0000000000000000",
    ] {
        assert!(
            status.lines().any(|have| have.trim_end() == line),
            "no {line:?} in\n{status}"
        );
    }
    drop_to(&user).expect_err("privileges are dropped already, and groups cannot be set");
}

fn keeps_only_the_capability_for_low_ports() {
    let had = capabilities(None).unwrap().permitted;
    drop_to(&test_user()).unwrap();
    let now = capabilities(None).unwrap();
    assert_eq!(
        (now.permitted, now.effective),
        (had & CapabilitySet::NET_BIND_SERVICE, now.permitted)
    );
    if !had.contains(CapabilitySet::NET_BIND_SERVICE) {
        return;
    }
    // Some low ports may be in use, but not all of them.
    let bound = (1..1024).rev().find_map(|port| {
        let address = Address::Tcp {
            ip: Some([127, 0, 0, 1].into()),
            port,
        };
        match Listener::bind(&address, ListenOptions::default()) {
            Ok(listener) => Some(listener),
            Err(error) if matches!(error.kind, BindErrorKind::InUse(_)) => None,
            Err(error) => panic!("{error}"),
        }
    });
    assert!(bound.is_some());
}

fn started_programs_have_no_capabilities() {
    drop_to(&test_user()).unwrap();
    let output = Command::new("cat").arg("/proc/self/status").output().unwrap();
    let status = String::from_utf8(output.stdout).unwrap();
    for line in [
        "Uid:\t64123\t64123\t64123\t64123",
        "CapPrm:\t0000000000000000",
        "CapEff:\t0000000000000000",
    ] {
        assert!(status.lines().any(|have| have == line), "no {line:?} in\n{status}");
    }
}

fn files_of_others_are_forbidden() {
    let at = |name: &str| directory().join(name);
    let set = |name: &str, mode| fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    for directory in ["closed", "passage", "theirs"] {
        fs::create_dir(at(directory)).unwrap();
        fs::write(at(directory).join("file"), "content").unwrap();
    }
    fs::write(at("secret"), "secret").unwrap();
    set("secret", 0o600);
    set("closed", 0o700);
    // Other users can open files in this directory, but cannot list it.
    set("passage", 0o711);
    set("theirs", 0o700);
    // This directory belongs to the test user.
    chown(at("theirs"), Some(64_123), None).unwrap();
    drop_to(&test_user()).unwrap();
    let root = Root::open(directory()).unwrap();
    // None of the paths contains a link, so the results are the same for every policy.
    for symlinks in [Symlinks::Inside, Symlinks::Owner, Symlinks::All] {
        for (path, readable) in [
            ("secret", false),
            ("closed/file", false),
            ("passage/file", true),
            ("theirs/file", true),
            ("theirs", true),
        ] {
            match root.open_file(path.as_bytes(), symlinks) {
                Ok(_) => assert!(readable, "{path} was opened with {symlinks:?}"),
                Err(OpenError::Forbidden) => assert!(!readable, "{path} is forbidden with {symlinks:?}"),
                Err(error) => panic!("{path} with {symlinks:?}: {error:?}"),
            }
        }
        // Directories that the user cannot read can be opened as directories, but not listed.
        for directory in ["passage", "closed"] {
            let opened = root.open_file(directory.as_bytes(), symlinks).unwrap();
            assert_eq!(opened.meta.kind, rocknet_io::confined_fs::FileKind::Directory);
            assert!(matches!(
                root.list(directory.as_bytes(), symlinks, 10),
                Err(OpenError::Forbidden)
            ));
        }
        assert!(matches!(
            root.list(b"closed/file", symlinks, 10),
            Err(OpenError::Forbidden)
        ));
    }
}

fn denied_ports_and_socket_files_are_reported() {
    drop_to(&test_user()).unwrap();
    let error = Listener::bind(&Address::Unix(directory().join("socket")), ListenOptions::default()).unwrap_err();
    assert!(matches!(error.kind, BindErrorKind::Denied), "{error}");
    let none = rustix::thread::CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none).unwrap();
    // The machine may permit all users to bind low ports.
    let first_free = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
    if first_free.trim() != "0" {
        let error = Listener::bind(&Address::Tcp { ip: None, port: 1 }, ListenOptions::default()).unwrap_err();
        assert!(matches!(error.kind, BindErrorKind::Denied), "{error}");
    }
}
