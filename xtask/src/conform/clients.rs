//! Runs command-line clients: curl as newcomers use it, and wrk and ab, under whose load no response may be lost.

use super::server::TestServer;
use crate::Failure;
use crate::command::{command, output};
use std::fs;
use std::path::Path;

/// Content of a file that is compared as a whole.
const PAGE: &str = "Thirteen byte";
/// Content that compresses well.
const LONG: &str = "The same line many times over, so that it becomes short.\n";
const LONG_LINES: usize = 200;
/// Options of wrk. All connections are busy at the same time, and no connection may starve.
const WRK: &[&str] = &["-t1", "-c64", "-d2s"];
/// Number of requests of ab: enough to find a connection that is closed at the wrong moment.
const AB_REQUESTS: u32 = 10_000;
/// Number of concurrent requests of ab.
const AB_CONCURRENT: u32 = 100;

/// Options of curl, a path, and the expected output: response body and status, or the format of `--write-out`.
type Row = (&'static [&'static str], &'static str, String);

pub fn curl(program: &Path) -> Result<(), Failure> {
    let (_folder, server) = small_site(program)?;
    let long = LONG.repeat(LONG_LINES);
    let status = |content: &str, status: u16| format!("{content} {status}");
    let type_and_length: &[&str] = &["-o", "/dev/null", "-w", "%{content_type} %header{content-length}"];
    let rows: &[Row] = &[
        (&[], "/page.txt", status(PAGE, 200)),
        (&["--http1.0"], "/page.txt", status(PAGE, 200)),
        (&["-r", "0-7"], "/page.txt", status("Thirteen", 206)),
        (&["-r", "-4"], "/page.txt", status("byte", 206)),
        (&["-r", "99-"], "/page.txt", status("", 416)),
        (&["-z", "1 Jan 2100"], "/page.txt", status("", 304)),
        (&["-z", "1 Jan 2000"], "/page.txt", status(PAGE, 200)),
        (&[], "/long.txt", status(&long, 200)),
        (&["--compressed"], "/long.txt", status(&long, 200)),
        (&["-L"], "/folder", status("inside", 200)),
        (&["-X", "DELETE"], "/page.txt", status("", 405)),
        (&["-d", "name=value"], "/page.txt", status("", 405)),
        (&["--path-as-is"], "/../../etc/passwd", status("", 400)),
        (&["--path-as-is"], "/%2e%2e/%2e%2e/etc/passwd", status("", 400)),
        (&[], "/nowhere", status("", 404)),
        (type_and_length, "/page.txt", "text/plain; charset=utf-8 13".to_owned()),
        (&["-I", "-o", "/dev/null"], "/page.txt", status("", 200)),
    ];
    for (options, path, expected) in rows {
        let mut curl = command("curl");
        // A later `-w` overrides this one, so a row can print something else. Bodies of error pages are not compared.
        curl.args(["-sS", "--max-time", "20", "-w", " %{http_code}"])
            .args(*options);
        let printed = output(curl.arg(server.url(path)))?;
        let refused = expected.starts_with(' ') && printed.ends_with(expected.as_str());
        if printed != *expected && !refused {
            return Err(format!("curl {} {path}: {printed:?}, not {expected:?}", options.join(" ")).into());
        }
    }
    println!("{} calls of curl are correct", rows.len());
    Ok(())
}

pub fn wrk(program: &Path) -> Result<(), Failure> {
    let (_folder, server) = small_site(program)?;
    let printed = output(command("wrk").args(WRK).arg(server.url("/page.txt")))?;
    judge_wrk(&printed).map_err(|wrong| format!("{wrong}:\n{printed}").into())
}

/// Fails if wrk reports failures or no requests.
pub fn judge_wrk(printed: &str) -> Result<(), String> {
    let requests = wrk_requests(printed)?;
    println!("{requests} requests, none failed");
    Ok(())
}

/// Returns the number of requests in the output of wrk. Fails if wrk reports failures or no requests. It prints a line
/// about failures only if there were any.
pub fn wrk_requests(printed: &str) -> Result<u64, String> {
    let mut lines = printed.lines().map(str::trim);
    if let Some(line) = lines.find(|line| line.starts_with("Socket errors:") || line.starts_with("Non-2xx")) {
        return Err(line.to_owned());
    }
    let requests = printed
        .lines()
        .find_map(|line| line.split_once(" requests in "))
        .and_then(|(number, _)| number.trim().parse::<u64>().ok());
    match requests {
        Some(requests) if requests > 0 => Ok(requests),
        _ => Err("no responses in wrk's output".to_owned()),
    }
}

/// Runs ab twice: with a connection per request, and with keep-alive, which HTTP/1.0 must request.
pub fn ab(program: &Path) -> Result<(), Failure> {
    let (_folder, server) = small_site(program)?;
    let url = server.url("/page.txt");
    for keep_alive in [false, true] {
        let mut ab = command("ab");
        ab.args(["-q", "-r", "-n", &AB_REQUESTS.to_string()]);
        ab.args(["-c", &AB_CONCURRENT.to_string()]);
        if keep_alive {
            ab.arg("-k");
        }
        let printed = output(ab.arg(&url))?;
        judge_ab(&printed, AB_REQUESTS, keep_alive).map_err(|wrong| format!("{wrong}:\n{printed}"))?;
    }
    Ok(())
}

fn judge_ab(printed: &str, requests: u32, keep_alive: bool) -> Result<(), String> {
    let field = |name: &str| {
        let value = printed.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().parse::<u32>().ok()
    };
    for (name, expected) in [
        ("Complete requests:", Some(requests)),
        ("Failed requests:", Some(0)),
        ("Non-2xx responses:", None),
        ("Keep-Alive requests:", keep_alive.then_some(requests)),
    ] {
        let found = field(name);
        if found != expected {
            return Err(format!("{name} {found:?}, not {expected:?}"));
        }
    }
    println!("{requests} requests, none failed, keep-alive: {keep_alive}");
    Ok(())
}

/// Creates a folder with a few files and serves it.
fn small_site(program: &Path) -> Result<(tempfile::TempDir, TestServer), Failure> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("page.txt"), PAGE)?;
    fs::write(folder.path().join("long.txt"), LONG.repeat(LONG_LINES))?;
    fs::create_dir(folder.path().join("folder"))?;
    fs::write(folder.path().join("folder/index.html"), "inside")?;
    let server = TestServer::of_folder(program, folder.path())?;
    Ok((folder, server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lost_response_fails_the_load_of_wrk() {
        let rows = [
            ("  92712 requests in 2.00s, 21.31MB read\n", true),
            ("  0 requests in 2.00s, 0.00B read\n", false),
            (
                "  92 requests in 2.00s, 1MB read\n  Socket errors: connect 0, read 1, write 0, timeout 0\n",
                false,
            ),
            (
                "  92 requests in 2.00s, 1MB read\n  Non-2xx or 3xx responses: 1\n",
                false,
            ),
            ("", false),
        ];
        for (printed, expected) in rows {
            assert_eq!(judge_wrk(printed).is_ok(), expected, "{printed:?}");
        }
    }

    #[test]
    fn one_lost_response_fails_the_load_of_ab() {
        let good = "Complete requests:      10\nFailed requests:        0\n";
        let keep_alive = format!("{good}Keep-Alive requests:    10\n");
        let rows = [
            (good.to_owned(), false, true),
            (keep_alive.clone(), true, true),
            // Connections that should have stayed open were closed.
            (good.to_owned(), true, false),
            (keep_alive.replace("requests:    10", "requests:    9"), true, false),
            (good.replace("10", "9"), false, false),
            (good.replace("  0", "  1"), false, false),
            (format!("{good}Non-2xx responses:      10\n"), false, false),
            (String::new(), false, false),
        ];
        for (printed, keep_alive, expected) in rows {
            assert_eq!(
                judge_ab(&printed, 10, keep_alive).is_ok(),
                expected,
                "{printed:?} {keep_alive}"
            );
        }
    }
}
