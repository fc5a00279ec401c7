//! Jobs that wait for a website or for another program.

use std::path::PathBuf;

use super::{Worker, programs, trust, visits};
use crate::job::Report;

impl Worker {
    /// Passes on the reports of jobs that have ended.
    pub(super) fn report_slow_jobs(&mut self) {
        while let Some(report) = self.slow.next_report() {
            let looks_again = matches!(report, Report::Trust(_)) && self.slow.take_repetition();
            (self.report)(report);
            if looks_again {
                self.begin_trust_look();
            }
        }
    }

    /// Requests a website.
    pub(super) fn begin_visit(&mut self, name: String) {
        let sites = self.server.as_ref().map_or(&[][..], |server| &server.sites);
        let site = sites.iter().find(|site| site.name == name);
        let url = site.and_then(|site| site.url()).map(str::to_owned);
        // The thread connects to the server itself, so that the connection of the worker is not kept busy.
        let server = self.server.as_ref().and(self.places.connected()).cloned();
        self.slow
            .begin(move || Report::Visited(visits::visit(server.as_ref(), &name, url)));
    }

    /// Looks into the trust stores.
    pub(super) fn begin_trust_look(&mut self) {
        let (program, config) = self.program_and_config();
        self.slow
            .begin_look(move || Report::Trust(trust::look(program.as_deref(), config.as_deref())));
    }

    /// Installs the certificate of the local CA in the stores of browsers.
    pub(super) fn begin_trust(&mut self) {
        let (program, config) = self.program_and_config();
        self.slow
            .begin(move || match programs::trust(program.as_deref(), config.as_deref()) {
                Ok(()) => Report::Trusted,
                Err(error) => Report::Failed(error),
            });
    }

    fn program_and_config(&self) -> (Option<PathBuf>, Option<PathBuf>) {
        let program = self.launcher.program().map(PathBuf::from);
        (program, self.present_config())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::job::{Job, Query};
    use crate::worker::fake_programs::script;
    use crate::worker::fake_server::FakeServer;

    /// Maximum wait for a report.
    const TIMEOUT: Duration = Duration::from_secs(60);

    /// Passes on reports until one is accepted.
    fn wait(worker: &mut Worker, reports: &Receiver<Report>, mut is_wanted: impl FnMut(&Report) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            worker.report_slow_jobs();
            if reports.try_iter().any(|report| is_wanted(&report)) {
                return;
            }
            thread::park_timeout(Duration::from_millis(10));
        }
        panic!("no report");
    }

    #[test]
    fn a_website_that_does_not_reply_does_not_keep_the_worker() {
        let (release, released) = channel::<()>();
        let released = Mutex::new(released);
        let server = FakeServer::start(move |request| {
            if request.starts_with("GET /api/site/visit?name=a.localhost ") {
                let _ = released.lock().unwrap().recv();
                return Some((200, "{\"url\":\"https://a.localhost/\",\"status\":500}".to_owned()));
            }
            match request.split(' ').nth(1)? {
                "/api/status" => Some((200, "{\"pid\":1}".to_owned())),
                "/api/sites" => Some((
                    200,
                    "[{\"name\":\"a.localhost\",\"urls\":[\"https://a.localhost/\"]}]".to_owned(),
                )),
                _ => Some((404, "{\"error\":\"no\"}".to_owned())),
            }
        });
        let (mut worker, reports) = server.worker();
        worker.poll(true);
        worker.carry_out(Job::Visit("a.localhost".to_owned()));
        // The worker still queries the state.
        worker.poll(false);
        assert!(worker.slow.is_running());
        let is_visit = |report: &Report| matches!(report, Report::Visited(_));
        assert!(!reports.try_iter().any(|report| is_visit(&report)));
        drop(release);
        wait(
            &mut worker,
            &reports,
            |report| matches!(report, Report::Visited(visit) if visit.reply == Ok(500) && visit.url == "https://a.localhost/"),
        );
    }

    #[test]
    fn a_program_that_hangs_does_not_keep_the_worker() {
        let server = FakeServer::start(|_| None);
        let folder = server.folder.path();
        let (looks, release) = (folder.join("looks"), folder.join("release"));
        script(
            folder,
            "rocknet",
            &format!(
                "echo look >> {}; while [ ! -e {} ]; do sleep 0.01; done; echo '{{\"stores\":[]}}'",
                looks.display(),
                release.display()
            ),
        );
        let (mut worker, reports) = server.worker_with(folder.join("rocknet"));
        // Further looks begin no other threads, but one look after the first.
        for _ in 0..3 {
            worker.carry_out(Job::Query(Query::Trust));
        }
        assert!(reports.try_iter().next().is_none() && worker.slow.is_running());
        std::fs::write(&release, "").unwrap();
        for _ in 0..2 {
            wait(&mut worker, &reports, |report| *report == Report::Trust(Ok(Vec::new())));
        }
        assert_eq!(std::fs::read_to_string(&looks).unwrap(), "look\nlook\n");
        assert!(!worker.slow.take_repetition());
        worker.carry_out(Job::Trust);
        wait(&mut worker, &reports, |report| *report == Report::Trusted);
    }
}
