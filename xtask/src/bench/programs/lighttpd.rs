//! lighttpd from Debian.

use super::{CONNECTIONS, Launch, Peer, Setting, user, write};
use crate::Failure;
use crate::command::find;

pub const PEER: Peer = Peer {
    name: "lighttpd",
    settings: "one process, no access log (its default), requests per connection unlimited",
    connections: CONNECTIONS,
    find: || find("lighttpd"),
    version: Some("-v"),
    configure,
};

fn configure(setting: &Setting<'_>) -> Result<Launch, Failure> {
    let configuration = format!(
        "{user}server.bind = \"127.0.0.1\"
server.port = {port}
server.document-root = \"{root}\"
server.errorlog = \"{scratch}/error.log\"
server.max-fds = {descriptors}
server.max-connections = {CONNECTIONS}
server.max-keep-alive-requests = 1000000000
server.max-keep-alive-idle = 65
server.listen-backlog = 4096
mimetype.assign = ( \".html\" => \"text/html\", \"\" => \"application/octet-stream\" )
",
        user = user("server.username = \"www-data\"\nserver.groupname = \"www-data\"\n"),
        port = setting.port,
        root = setting.site.root().display(),
        scratch = setting.scratch.display(),
        descriptors = 2 * CONNECTIONS,
    );
    let program = find("lighttpd").ok_or("not installed")?;
    let file = write(setting, "lighttpd.conf", &configuration)?;
    Ok(Launch {
        program,
        arguments: vec!["-D".into(), "-f".into(), file.into()],
        configuration,
    })
}
