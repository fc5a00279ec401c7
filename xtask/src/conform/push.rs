//! Tests server push and Early Hints with clients of other projects: a page and five files in one round trip for
//! nghttp, and 103 for curl, which accepts no pushes.

use super::server::TestServer;
use crate::Failure;
use crate::command::{command, output};
use std::fs;
use std::path::Path;

const CLEAR: &str = "\
[server]
workers = 1
h2c = true
[site.default]
listen = \"127.0.0.1:0\"
";
const TLS: &str = "\
[server]
workers = 1
state = \"state\"
[site.localhost]
listen = \"https://127.0.0.1:0\"
tls = \"local\"
";
const SITE: &str = "\
root = \"www\"
push = { \"/\" = [\"/1.css\", \"/2.css\", \"/3.css\", \"/4.css\", \"/5.css\"] }
";

const FILES: usize = 5;

pub fn run(program: &Path) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("www"))?;
    let mut page = "<!doctype html><title>Page</title>\n".to_owned();
    for number in 1..=FILES {
        fs::write(
            folder.path().join(format!("www/{number}.css")),
            "body { color: black }\n",
        )?;
        page.push_str(&format!("<link rel=\"stylesheet\" href=\"/{number}.css\">\n"));
    }
    fs::write(folder.path().join("www/index.html"), page)?;
    for (configuration, option) in [(CLEAR, "--http2-prior-knowledge"), (TLS, "--http2")] {
        fs::write(folder.path().join("rocknet.toml"), format!("{configuration}{SITE}"))?;
        let server = TestServer::start(program, &["run", "-c", "rocknet.toml"], folder.path())?;
        check(&server.url("/"), option)?;
    }
    Ok(())
}

/// Checks a URL with nghttp and curl; `option` makes curl use HTTP/2.
fn check(url: &str, option: &str) -> Result<(), Failure> {
    // nghttp requests the page and all files to which the page refers. If all files are pushed, the client sends no
    // other request, so everything takes one round trip.
    for (options, pushed) in [(&["-ans"][..], FILES), (&["-ans", "--no-push"], 0)] {
        let printed = output(command("nghttp").args(options).arg(url))?;
        let streams = streams(&printed);
        let promised = streams.iter().filter(|number| *number % 2 == 0).count();
        if (streams.len(), promised) != (1 + FILES, pushed) {
            return Err(format!(
                "nghttp {}: {promised} pushed of {streams:?}\n{printed}",
                options.join(" ")
            )
            .into());
        }
        println!("nghttp {} {url}: {promised} of {FILES} files pushed", options.join(" "));
    }

    let printed = output(command("curl").args(["-sSk", "-o", "/dev/null", "-D", "-", option, url]))?;
    let lines: Vec<_> = printed.lines().map(str::trim_end).collect();
    let at = |start: &str| lines.iter().position(|line| line.starts_with(start));
    match (
        at("HTTP/2 103"),
        at("link: </1.css>; rel=preload; as=style"),
        at("HTTP/2 200"),
    ) {
        (Some(hints), Some(link), Some(answer)) if hints < link && link < answer => {
            println!("curl {url} received 103 with their links");
            Ok(())
        }
        _ => Err(format!("curl received no 103:\n{printed}").into()),
    }
}

/// Returns the stream identifiers in nghttp's table; pushed streams have even ones.
fn streams(printed: &str) -> Vec<u32> {
    let rows = printed.lines().skip_while(|line| !line.starts_with("id ")).skip(1);
    rows.filter_map(|row| row.split_whitespace().next()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_read_from_the_table() {
        let printed = "\
Request timing: 12\nid  responseEnd requestStart  process code size request path
 13     +9.22ms       +480us   8.74ms  200   41 /
  4    +11.32ms *    +8.82ms   2.50ms  200   38 /a2.css\n";
        assert_eq!(streams(printed), [13, 4]);
        assert!(streams("nothing").is_empty());
    }
}
