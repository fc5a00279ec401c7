//! Tests that change or need something of the whole process, such as a limit or its streams: each runs in one of its own.

use std::env;
use std::process::Command;

/// Whether this process was started for `test`, named as the test harness names it. Elsewhere it starts that process, and
/// asserts that the test ran and passed there. Its input is empty and its outputs are pipes.
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
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&child.stderr)
    );
    false
}
