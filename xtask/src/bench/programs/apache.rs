//! Apache from Debian with its event module.

use super::{CONNECTIONS, Deployment, Launch, ServerProgram, user, write};
use crate::Failure;
use crate::bench::content::POST_REDIRECT;
use crate::command::find;

pub const PROGRAM: ServerProgram = ServerProgram {
    name: "apache",
    settings: "event module, 2 processes of 64 threads, sendfile, no access log, requests per connection unlimited",
    connections: CONNECTIONS,
    find: || find("apache2"),
    version: Some("-v"),
    configure,
};

fn configure(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    let http2 = if deployment.is_http2() {
        "LoadModule http2_module modules/mod_http2.so\nProtocols h2 h2c http/1.1\n"
    } else {
        ""
    };
    let tls = deployment.certificate()?.map_or(String::new(), |certificate| {
        let (chain, key) = (certificate.chain.display(), certificate.key.display());
        format!(
            "LoadModule ssl_module modules/mod_ssl.so\nSSLEngine on\nSSLCertificateFile {chain}\nSSLCertificateKeyFile {key}\n"
        )
    });
    // Idle connections need no thread: with AsyncRequestWorkerFactor 160, each of the two processes accepts
    // 64 + 160 × 64 connections.
    let configuration = format!(
        "ServerRoot /usr/lib/apache2
LoadModule mpm_event_module modules/mod_mpm_event.so
LoadModule authz_core_module modules/mod_authz_core.so
LoadModule mime_module modules/mod_mime.so
LoadModule alias_module modules/mod_alias.so
{http2}{tls}ServerName localhost
Listen 127.0.0.1:{port}
ListenBacklog 4096
PidFile {scratch}/apache.pid
DefaultRuntimeDir {scratch}
ErrorLog {scratch}/error.log
{user}StartServers 2
ServerLimit 2
ThreadLimit 64
ThreadsPerChild 64
MaxRequestWorkers 128
MinSpareThreads 128
MaxSpareThreads 128
AsyncRequestWorkerFactor 160
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 65
EnableSendfile On
TypesConfig /dev/null
AddType text/html .html
Redirect 308 /length {POST_REDIRECT}
DocumentRoot {root}
<Directory {root}>
  AllowOverride None
  Require all granted
</Directory>
",
        user = user("User www-data\nGroup www-data\n"),
        port = deployment.port,
        root = deployment.site.root().display(),
        scratch = deployment.scratch.display(),
    );
    let program = find("apache2").ok_or("not installed")?;
    let file = write(deployment, "apache.conf", &configuration)?;
    let arguments = vec!["-DFOREGROUND".into(), "-f".into(), file.into()];
    Ok(Launch {
        program,
        arguments,
        configuration,
    })
}
