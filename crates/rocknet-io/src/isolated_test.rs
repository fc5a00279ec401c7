//! Runs a test in its own process. Used by tests that change or need state of the whole process, such as a limit or the
//! standard streams.

use std::env;
use std::process::Command;

/// Returns true in the process that was started for `test`, which is the full name of the test in the harness. In the
/// process of the harness, the function starts the new process, asserts that the test passed there, and returns false.
/// The standard input of the new process is empty, and its outputs are pipes.
pub(crate) fn in_own_process(test: &str) -> bool {
    /// Environment variable that is set in the new process only.
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
