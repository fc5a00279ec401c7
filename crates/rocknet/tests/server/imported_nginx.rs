//! Compares translations of `rocknet import` with nginx: both respond to the same requests of `imported/nginx.conf`.

use std::fmt::Write;
use std::ops::RangeInclusive;

use rocknet_import::{Import, Language, Note, import};

use super::support::client::request;
use super::support::peer::Peer;
use super::support::{Client, Folder, ReceivedResponse, Running};

/// Servers with their requests.
const SERVERS: &str = include_str!("imported/nginx.conf");

/// Files of the servers. `users` has the password `pass` of `user`.
const FILES: &[(&str, &str)] = &[
    ("www/index.html", "home"),
    ("www/a.txt", "a"),
    ("www/b.txt", "b"),
    ("www/a.html", "page a"),
    ("www/b.css", "css"),
    ("www/p.png", "png"),
    ("www/dir/index.html", "dir"),
    ("www/dir/x.txt", "x"),
    ("www/dir/x.html", "x page"),
    ("www/dir/x.css", "x css"),
    ("www/dir/page.html", "page"),
    ("www/dir/a.secret", "secret"),
    ("www/dir/open/o.html", "open"),
    ("www/deep/er/y.txt", "y"),
    ("www/deep/x.bak", "deep old"),
    ("www/img/p.png", "picture"),
    ("www/img/a.txt", "text"),
    ("www/.git/config", "git"),
    ("www/.htaccess", "ht"),
    ("www/.well-known/x", "known"),
    ("www/.well-known/.git", "known git"),
    ("www/sub/.env", "env"),
    ("www/old.bak", "old"),
    ("www/a.secret", "top"),
    ("www/secret/s.txt", "s"),
    ("www/secret/open.txt", "open"),
    ("www/secret/x.bak", "secret old"),
    ("www/errors/404.html", "lost"),
    ("www/errors/403.html", "no"),
    ("other/f.txt", "f"),
    ("other/b.css", "other css"),
    ("other/users", "user:$apr1$abcdefgh$rK/lObuciIG5ziaV8BdHR/\n"),
];

/// A request of the file.
struct Case<'f> {
    line: usize,
    host: &'f str,
    /// Lines of the server.
    server: RangeInclusive<usize>,
    /// Method and target.
    request: String,
    fields: Vec<&'f str>,
    /// Part of a directive that has a note about the difference; `None` if the responses are equal.
    note: Option<&'f str>,
}

impl Case<'_> {
    fn fetch(&self, client: &mut Client) -> ReceivedResponse {
        let host = format!("Host: {}", self.host);
        let mut fields: Vec<&str> = vec![&host];
        fields.extend(&self.fields);
        if self.request.starts_with("POST") {
            fields.push("Content-Length: 0");
        }
        client.send(request(&self.request, &fields));
        client.response_to(self.request.split(' ').next().unwrap_or_default())
    }
}

fn cases(text: &str) -> Vec<Case<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut cases = Vec::new();
    let (mut host, mut first, mut last) = ("", 0, 0);
    for (line, number) in lines.iter().zip(1..) {
        if *line == "server {" {
            first = number;
        } else if *line == "}" {
            last = number;
        } else if let Some(name) = line.strip_prefix("    server_name ") {
            host = name.trim_end_matches(';');
        }
        let Some(text) = line.strip_prefix("#> ") else { continue };
        let (text, note) = match text.split_once(" ! ") {
            Some((text, note)) => (text, Some(note)),
            None => (text, None),
        };
        let mut parts = text.split(" | ");
        let request = parts.next().unwrap_or_default();
        cases.push(Case {
            line: number,
            host,
            server: first..=last,
            request: match request.starts_with('/') {
                true => format!("GET {request}"),
                false => request.to_owned(),
            },
            fields: parts.collect(),
            note,
        });
    }
    cases
}

/// Returns what must be equal: status, body, and target of a redirect. Pages of errors are those of each server.
fn compared(case: &Case<'_>, response: &ReceivedResponse) -> (u16, String, String) {
    let text = response.text();
    let is_page = text.contains("<center>nginx") || text.starts_with("<!doctype html>");
    let body = if is_page { String::new() } else { text };
    let path = case.request.split(' ').nth(1).unwrap_or_default();
    let folder = path.rfind('/').map_or("", |at| &path[..=at]);
    let target = response.field("Location").unwrap_or_default();
    let target = target.strip_prefix(&format!("http://{}", case.host)).unwrap_or(target);
    let target = match target.strip_prefix("./") {
        Some(rest) => format!("{folder}{rest}"),
        None => target.to_owned(),
    };
    match response.status {
        // nginx adds a slash with 301, and RockNet with 308.
        301 | 308 if target == format!("{path}/") => (308, String::new(), target),
        300..400 => (response.status, String::new(), target),
        status => (status, body, target),
    }
}

/// Starts nginx with the servers, an upstream, and an authorization service.
fn nginx(folder: &Folder) -> Peer {
    let here = folder.path("").display().to_string();
    let servers = filled(folder, "nginx.sock");
    folder.write(
        "nginx.conf",
        format!(
            "daemon off;\nmaster_process off;\npid {here}nginx.pid;\nerror_log {here}nginx.log;\nevents {{}}\nhttp {{\n\
             access_log off;\nabsolute_redirect off;\ndefault_type text/plain;\nclient_body_temp_path {here}body;\n\
             proxy_temp_path {here}p;\nfastcgi_temp_path {here}f;\nscgi_temp_path {here}s;\nuwsgi_temp_path {here}u;\n\
             {servers}\nserver {{\nlisten unix:{here}app.sock;\nlocation / {{ return 200 \"$request_method $request_uri \
             $http_x_a$http_x_user\"; }}\n}}\nserver {{\nlisten unix:{here}auth.sock;\nlocation / {{\nif ($cookie_session = ann) \
             {{ add_header X-Auth-User ann; return 204; }}\nreturn 401;\n}}\nlocation /located {{\nadd_header Location \
             http://login.test/ always;\nreturn 401;\n}}\n}}\n}}\n"
        ),
    );
    let (config, log) = (format!("{here}nginx.conf"), format!("{here}nginx.log"));
    let arguments = ["-c", &config, "-p", &here, "-e", &log];
    Peer::start(folder, "nginx", &arguments, "nginx.sock", "nginx.log")
}

/// Returns the servers with the paths of this folder, and with this socket.
fn filled(folder: &Folder, socket: &str) -> String {
    let path = |name: &str| folder.path(name).display().to_string();
    SERVERS
        .replace("{www}", &path("www"))
        .replace("{other}", &path("other"))
        .replace("{app}", &path("app.sock"))
        .replace("{auth}", &path("auth.sock"))
        .replace("{listen}", &path(socket))
}

/// Returns the difference between two responses, unless a note names it; `None` if they are
/// equal.
fn difference(
    case: &Case<'_>,
    nginx: &ReceivedResponse,
    rocknet: &ReceivedResponse,
    import: &Import,
) -> Option<String> {
    let (expected, found) = (compared(case, nginx), compared(case, rocknet));
    let Some(named) = case.note else {
        return (expected != found).then(|| format!("nginx {expected:?}, RockNet {found:?}"));
    };
    if expected == found {
        return Some(format!("equal responses, but a note about {named}"));
    }
    let is_named = |note: &&Note| case.server.contains(&note.line) && note.directive.contains(named);
    let notes: Vec<&Note> = import.notes.iter().filter(is_named).collect();
    let is_opened = nginx.status >= 400 && rocknet.status < 400;
    let is_noted = match is_opened {
        true => notes.iter().any(|note| note.weakens_access()),
        false => !notes.is_empty(),
    };
    (!is_noted).then(|| format!("nginx {expected:?}, RockNet {found:?}, and no note about {named}: {notes:?}"))
}

#[test]
fn translations_respond_as_nginx_does_or_have_a_note() {
    let folder = Folder::with(FILES);
    let servers = filled(&folder, "rocknet.sock");
    let import = import(Language::Nginx, "nginx.conf", &servers).expect("a translation");
    let nginx = nginx(&folder);
    let text = import
        .toml
        .replacen("[server]\n", "[server]\nworkers = 1\nblocking_threads = 2\n", 1);
    let server = Running::start(folder, &text);
    let mut differences = String::new();
    let all = cases(SERVERS);
    assert!(all.len() > 250, "{} requests", all.len());
    for case in &all {
        let client = |socket: &str| case.fetch(&mut server.connect_unix(socket));
        let (expected, found) = (client("nginx.sock"), client("rocknet.sock"));
        if let Some(difference) = difference(case, &expected, &found, &import) {
            let _ = writeln!(
                differences,
                "line {}: {} {} {:?}: {difference}",
                case.line, case.host, case.request, case.fields
            );
        }
    }
    drop(nginx);
    assert!(differences.is_empty(), "{differences}{}", import.toml);
}
