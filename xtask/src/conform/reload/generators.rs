//! Load generators: wrk over HTTP/1.1 without TLS, and h2load over HTTP/2 with TLS.

use super::site::ReloadSite;
use crate::Failure;
use crate::command::{command, shown};
use crate::conform::clients::judge_wrk;
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Stdio};

/// Options of wrk. It is stopped before it has run for this time.
const WRK: &[&str] = &["-t1", "-c16", "-d3600s", "--timeout", "60s"];
/// Options of h2load: few requests per second, because other programs of the load share the machine.
const H2LOAD: &[&str] = &["-t1", "-c4", "-m4", "--rps=100", "-n3000"];
/// Line of h2load if all requests have succeeded.
const H2LOAD_RESULT: &str =
    "requests: 3000 total, 3000 started, 3000 done, 3000 succeeded, 0 failed, 0 errored, 0 timeout";

/// A running load generator, killed when dropped.
pub struct Generator {
    command: String,
    child: Option<Child>,
}

impl Generator {
    /// Starts wrk, which runs until [`Generator::stop_wrk`].
    pub fn wrk(site: &ReloadSite) -> Result<Generator, Failure> {
        let url = format!("http://127.0.0.1:{}/small.txt", site.ports().0);
        Generator::start(command("wrk").args(WRK).arg(url))
    }

    /// Starts h2load, which sends a number of requests.
    ///
    /// h2load opens no new connection after GOAWAY, and counts the requests that it did not send as failed. So no
    /// worker may be removed meanwhile.
    pub fn h2load(site: &ReloadSite) -> Result<Generator, Failure> {
        let port = site.ports().1;
        let (to, url) = (
            format!("--connect-to=127.0.0.1:{port}"),
            format!("https://localhost:{port}/small.txt"),
        );
        Generator::start(command("h2load").args(H2LOAD).args([to, url]))
    }

    fn start(command: &mut Command) -> Result<Generator, Failure> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        Ok(Generator {
            child: Some(child.spawn().map_err(|error| format!("{}: {error}", shown(command)))?),
            command: shown(command),
        })
    }

    fn finish(mut self) -> Result<String, Failure> {
        let child = self.child.take().ok_or("the load generator has ended")?;
        let output = child.wait_with_output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Stops wrk. Fails if a request has failed.
    pub fn stop_wrk(self) -> Result<(), Failure> {
        let id = self.child.as_ref().map(Child::id);
        if let Some(pid) = id.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            kill_process(pid, Signal::INT)?;
        }
        let command = self.command.clone();
        let printed = self.finish()?;
        judge_wrk(&printed).map_err(|wrong| format!("{command}: {wrong}:\n{printed}").into())
    }

    /// Waits for the end of h2load. Fails if a request has failed.
    pub fn wait_for_h2load(self) -> Result<(), Failure> {
        let command = self.command.clone();
        let printed = self.finish()?;
        if printed.lines().any(|line| line == H2LOAD_RESULT) {
            Ok(())
        } else {
            Err(format!("{command}: requests failed:\n{printed}").into())
        }
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
