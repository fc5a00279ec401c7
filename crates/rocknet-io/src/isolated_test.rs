//! Runs a test in its own process, because it changes or needs state of the whole process, such as a limit or its
//! streams.

use std::env;
use std::process::Command;

/// Returns true in the process started for `test`, which is the name that the test harness uses. Elsewhere it starts
/// that process and asserts that the test ran and passed there. The standard input of the process is empty, and its
/// outputs are pipes.
pub(crate) fn in_own_process(test: &str) -> bool {
    const CHILD: &str = "ROCKNET_TEST_ISOLATED";
    if env::var_os(CHILD).is_some() {
        return true;
    }
    let child = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, test)
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && output.contains("1 passed"),
        "{output}{}",
        String::from_utf8_lossy(&child.stderr)
    );
    false
}
