//! Variables by which PHP, applications and programs get the user of a login.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::support::fastcgi::{self, Peer, SOCKET};

/// Variables that the applications of the tests send back.
const NAMES: [&str; 7] = [
    "REMOTE_USER",
    "AUTH_TYPE",
    "HTTP_REMOTE_USER",
    "HTTP_REMOTE_GROUPS",
    "HTTP_REMOTE_NAME",
    "HTTP_REMOTE_EMAIL",
    "HTTP_COOKIE",
];

#[test]
fn applications_get_the_user_and_no_forged_variables() {
    let folder = folder();
    let values = NAMES.map(|name| format!("\"${name}\"")).join(" ");
    let program = format!("#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\nprintf '%s|' {values}\n");
    folder.write("www/cgi-bin/env.sh", program);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path("www/cgi-bin/env.sh"), mode).expect("a mode");
    folder.write("www/script.php", "<?php");
    let _peer = Peer::start(&folder.path(SOCKET), |request, stream| {
        let values = NAMES.map(|name| format!("{}|", request.variable(name))).concat();
        let text = format!("Content-Type: text/plain\r\n\r\n{values}");
        fastcgi::write_to(stream, fastcgi::response(text.as_bytes()));
        fastcgi::Next::Keep
    });
    let provider = Provider::start();
    let auth = auth(&provider.issuer(), "");
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nphp = \"unix:{SOCKET}\"\n\
         cgi = \"/cgi-bin\"\n{auth}\n\
         [site.default.route.\"/app/*\"]\nfastcgi = \"unix:{SOCKET}\"\n\
         [site.default.route.\"/open/*\"]\nfastcgi = \"unix:{SOCKET}\"\nauth = false\n"
    );
    let server = Running::start(folder, &text);
    let mut browser = Browser::default();
    assert_eq!(browser.log_in(&server, &provider, "/").status, 302);
    let cookie = format!("{}; a=1", browser.field());
    let fields = [
        &*cookie,
        "Remote-User: root",
        "remote_user: root",
        "Remote.Groups: admins",
        "Remote-Email: root@a.test",
    ];
    for path in ["/script.php", "/script.php/more", "/cgi-bin/env.sh", "/app/x"] {
        let response = server.fetch(&format!("GET {path}"), &fields);
        let expected = "user-1||user-1|staff,b|Ann Ä|ann@a.test|a=1|";
        assert_eq!((response.status, &*response.text()), (200, expected), "{path}");
    }
    // A route without a login does not know the user.
    assert_eq!(server.fetch("GET /open/x", &fields).text(), "||||||a=1|");
}
