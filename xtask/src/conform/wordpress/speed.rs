//! Compares a stored page of WordPress with a static file of the same length: the CPU time of the server per request.

use crate::Failure;
use crate::command::{command, output};
use crate::conform::application::Application;
use crate::conform::clients::wrk_requests;
use crate::conform::session::Session;
use std::fs;
use std::path::Path;

/// File with the bytes of the page.
const FILE: &str = "/copy-of-the-page.html";
/// Maximum ratio of the CPU times. The bench measures about 1.0 on a quiet machine; a lookup for each request would be
/// several times as much.
const MAX_RATIO: f64 = 1.5;
/// Rounds of page and file. The least time of each counts, because other programs only add to it.
const ROUNDS: usize = 3;
const WRK: &[&str] = &["-t1", "-c8", "-d2s"];

/// Checks a post as a visitor. `root`: folder of the files of WordPress. `post`: URL of the post.
pub fn check(application: &Application, root: &Path, post: &str, visitor: &Session) -> Result<(), Failure> {
    let page = visitor.get(post)?.expect(200, &[])?;
    fs::write(root.join(&FILE[1..]), &page.content)?;
    let file = visitor.get(FILE)?.expect(200, &[])?;
    if file.content != page.content {
        return Err(file.wrong("not the bytes of the page"));
    }
    let mut least = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for (least, path) in least.iter_mut().zip([post, FILE]) {
            *least = least.min(cpu_per_request(application, &visitor.url(path))?);
        }
    }
    let ratio = least[0] / least[1];
    println!(
        "a stored page of {} bytes takes {:.1} µs of CPU time over TLS, {ratio:.2} × a file of the same length",
        page.content.len(),
        least[0]
    );
    match ratio <= MAX_RATIO {
        true => Ok(()),
        false => Err(format!("more than {MAX_RATIO} × the file").into()),
    }
}

/// Returns the CPU time of the server per request to a URL, in microseconds.
fn cpu_per_request(application: &Application, url: &str) -> Result<f64, Failure> {
    let server = application.server()?;
    let before = server.cpu_time()?;
    let printed = output(command("wrk").args(WRK).arg(url))?;
    let requests = wrk_requests(&printed).map_err(|wrong| format!("{wrong}:\n{printed}"))?;
    Ok((server.cpu_time()? - before) * 1e6 / requests as f64)
}
