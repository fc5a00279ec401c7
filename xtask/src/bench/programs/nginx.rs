//! nginx from Debian, with Debian's configuration and with a tuned one.

use super::{CONNECTIONS, Deployment, KEEP_ALIVE_CONNECTIONS, Launch, ServerProgram, user, write};
use crate::Failure;
use crate::bench::variant::Variant;
use crate::command::find;

pub const STOCK: ServerProgram = ServerProgram {
    name: "nginx-stock",
    settings: "Debian's nginx.conf: worker_processes auto, access log on, gzip on, 768 connections per worker",
    // Each core has one worker with 768 connections, and one worker may accept all connections of a row.
    connections: 768,
    find: || find("nginx"),
    version: Some("-v"),
    configure: configure_stock,
};

pub const TUNED: ServerProgram = ServerProgram {
    name: "nginx",
    settings: "one worker, sendfile, open_file_cache, no access log, requests per connection unlimited",
    connections: CONNECTIONS,
    find: || find("nginx"),
    version: Some("-v"),
    configure: configure_tuned,
};

pub const AIO: ServerProgram = ServerProgram {
    name: "nginx-aio",
    settings: "as nginx, with aio threads: a pool of 32 threads reads files that are not in memory",
    configure: |deployment| configure(deployment, "  aio threads;\n"),
    ..TUNED
};

fn configure_stock(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    let http = format!(
        "  tcp_nopush on;
  types_hash_max_size 2048;
  access_log {}/access.log;
  gzip on;
",
        deployment.scratch.display()
    );
    let text = Text {
        main: "worker_processes auto;
events { worker_connections 768; }
",
        http: &http,
        server: &format!(
            "    listen {};
    index index.html;
    location / {{ try_files $uri $uri/ =404; }}
",
            deployment.port
        ),
    };
    launch(deployment, &text)
}

fn configure_tuned(deployment: &Deployment<'_>) -> Result<Launch, Failure> {
    configure(deployment, "")
}

/// Writes the configuration; `more` is added to its http block.
fn configure(deployment: &Deployment<'_>, more: &str) -> Result<Launch, Failure> {
    let (ssl, tls) = deployment.certificate()?.map_or(("", String::new()), |certificate| {
        let (chain, key) = (certificate.chain.display(), certificate.key.display());
        (
            " ssl",
            // Debian's nginx 1.22 offers TLS 1.3 only if configured. Without it, nginx would be measured with another
            // protocol version than the other servers.
            format!(
                "    ssl_certificate {chain};
    ssl_certificate_key {key};
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_cache shared:SSL:10m;
"
            ),
        )
    });
    let http2 = if deployment.is_http2() { " http2" } else { "" };
    let (upstreams, proxied) = proxied(deployment);
    // A tunnel uses two connections: one to the client and one to the upstream.
    let connections = CONNECTIONS * if deployment.variant == Variant::Tunnels { 2 } else { 1 };
    let text = Text {
        main: &format!(
            "worker_processes 1;
worker_rlimit_nofile 40000;
events {{ worker_connections {connections}; multi_accept on; }}
"
        ),
        http: &format!(
            "{more}  tcp_nopush off;
  tcp_nodelay on;
  keepalive_timeout 65s;
  keepalive_requests 1000000000;
  open_file_cache max=10000 inactive=60s;
  open_file_cache_valid 30s;
  open_file_cache_min_uses 1;
  open_file_cache_errors on;
  access_log off;
{upstreams}"
        ),
        server: &format!(
            "    listen {} backlog=4096{ssl}{http2};
{tls}{proxied}    log_not_found off;
",
            deployment.port
        ),
    };
    launch(deployment, &text)
}

/// Returns the upstream block and the location that proxies to it, with keep-alive and the same forwarded fields as
/// RockNet. Both are empty if there are no upstreams.
fn proxied(deployment: &Deployment<'_>) -> (String, &'static str) {
    if deployment.upstreams.is_empty() {
        return (String::new(), "");
    }
    let servers = deployment
        .upstreams
        .iter()
        .map(|port| format!("    server 127.0.0.1:{port};\n"));
    let servers: String = servers.collect();
    // Idle connections that are kept for reuse: 128, as in RockNet's proxy, or as many as RockNet is configured to
    // keep.
    let (kept, proxied) = match deployment.variant {
        Variant::Tunnels => (128, UPGRADED),
        Variant::FastCgi | Variant::Php => (KEEP_ALIVE_CONNECTIONS, BY_FASTCGI),
        Variant::Cached => (128, CACHED),
        _ => (128, PROXIED),
    };
    let store = match deployment.variant {
        Variant::Cached => format!(
            "  proxy_cache_path {}/store keys_zone=store:10m;\n",
            deployment.scratch.display()
        ),
        _ => String::new(),
    };
    let upstreams = format!(
        "{store}  upstream behind {{
{servers}    keepalive {kept};
    keepalive_requests 1000000000;
  }}
"
    );
    (upstreams, proxied)
}

const PROXIED: &str = "    location / {
      proxy_pass http://behind;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host $host;
    }
";

/// Location of a cache. Responses are in files, which `open_file_cache` keeps open.
const CACHED: &str = "    location / {
      proxy_pass http://behind;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
      proxy_set_header Host $host;
      proxy_cache store;
      proxy_cache_valid 200 1h;
    }
";

/// Location for WebSocket, as in nginx's manual.
const UPGRADED: &str = "    location / {
      proxy_pass http://behind;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection upgrade;
      proxy_set_header Host $host;
      proxy_read_timeout 1h;
    }
";

/// Location for FastCGI, with the variables of Debian's `fastcgi_params`.
const BY_FASTCGI: &str = "    location / {
      include /etc/nginx/fastcgi_params;
      fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
      fastcgi_pass behind;
      fastcgi_keep_conn on;
    }
";

/// Parts of the configuration that differ between the programs of this file, by block.
struct Text<'a> {
    main: &'a str,
    http: &'a str,
    server: &'a str,
}

/// Returns the directives for temporary folders. nginx creates them at start, and only root can do that at the default
/// paths.
fn temporary(deployment: &Deployment<'_>) -> String {
    let scratch = deployment.scratch.display();
    ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("  {name}_temp_path {scratch}/{name};\n"))
        .concat()
}

fn launch(deployment: &Deployment<'_>, text: &Text<'_>) -> Result<Launch, Failure> {
    let Text { main, http, server } = text;
    let configuration = format!(
        "{user}{main}daemon off;
pid {scratch}/nginx.pid;
error_log {scratch}/error.log;
http {{
  sendfile on;
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
{http}{temporary}  server {{
{server}    root {root};
  }}
}}
",
        user = user("user www-data;\n"),
        scratch = deployment.scratch.display(),
        temporary = temporary(deployment),
        root = deployment.site.root().display(),
    );
    let program = find("nginx").ok_or("not installed")?;
    let file = write(deployment, "nginx.conf", &configuration)?;
    // Without -e, nginx would open the system's error log before it has read its configuration.
    let log = deployment.scratch.join("start.log");
    let arguments = vec!["-e".into(), log.into(), "-c".into(), file.into()];
    Ok(Launch {
        program,
        arguments,
        configuration,
    })
}
