//! `cargo xtask conform`: runs programs of other projects against a server built from this checkout.

mod access_log;
mod application;
mod auth;
mod autobahn;
mod browser;
mod clients;
mod cpu_time;
mod dashboard;
mod database;
mod devtools;
mod folder;
mod framework;
mod grpc;
mod h2spec;
mod hpack;
mod http3;
mod http_cache;
mod laravel;
mod package;
mod page_server;
mod phpmyadmin;
mod prometheus;
mod push;
mod reload;
mod server;
mod session;
mod slow;
mod static_program;
mod symfony;
mod trusted;
mod upstreams;
mod websocket;
mod window;
mod wordpress;

use self::autobahn::Cases;
use crate::Failure;
use crate::command::{cargo, run as run_command};
use crate::packages::{self, Purpose};
use crate::steps::Steps;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Options {
    /// Run only these steps; by default all except deflate and static
    #[arg(value_enum)]
    steps: Vec<Step>,
    /// Seconds of each slow attack; with less than the server's timeouts, the attack shows nothing
    #[arg(long, default_value_t = 75)]
    seconds: u32,
    /// Connections of each slow attack
    #[arg(long, default_value_t = 500)]
    connections: u32,
    /// The program to test; by default a release build of this checkout
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Folder that gets pictures of the dashboard, such as docs/images, or of the desktop program, such as docs/gui;
    /// name one of the steps
    #[arg(long, value_name = "FOLDER")]
    pictures: Option<PathBuf>,
    /// Folder that gets pages with the results of the steps http-cache and auth, such as docs/conformance
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Step {
    /// Headless Chromium loads the pages that people see
    Browser,
    /// Headless Chromium uses the dashboard, and axe-core judges its views
    Dashboard,
    /// The desktop program, built for release: the first five minutes of a new user by keyboard, failures, and budgets;
    /// takes minutes
    Window,
    /// Headless Chromium on a site of the local CA, before `rocknet trust` and after it
    Trusted,
    /// Headless Chromium uses WebSocket through the proxy, over HTTP/1.1 and HTTP/2
    Websocket,
    /// The first commands of a newcomer, with curl
    Curl,
    /// Two seconds of keep-alive load without a lost response
    Wrk,
    /// A connection per request, then keep-alive, with HTTP/1.0
    Ab,
    /// Violations of each rule of HTTP/2
    H2spec,
    /// Pushed resources for nghttp, Early Hints for curl
    Push,
    /// A small Laravel application over HTTP/2
    Laravel,
    /// A small Symfony application over HTTP/2
    Symfony,
    /// Field blocks exchanged with Python's HPACK
    Hpack,
    /// The npm package http-cache-tests against the response cache
    HttpCache,
    /// Forward authentication with oauth2-proxy, and logins by OpenID Connect at mockoidc and oidc-provider
    Auth,
    /// Clients of other projects over HTTP/3: aioquic, h3i, pylsqpack, quic-go and Chromium
    H3,
    /// WordPress over HTTP/2 with its own MariaDB
    Wordpress,
    /// phpMyAdmin over HTTP/2 with its own MariaDB
    Phpmyadmin,
    /// A gibibyte through the proxy in each direction, with constant memory
    Streaming,
    /// gRPC with Python's grpcio, without and with TLS
    Grpc,
    /// A hundred reloads and four upgrades under load, with each I/O back end; takes minutes
    Reload,
    /// gunicorn, uvicorn and Node behind the proxy, restarted under load
    Upstreams,
    /// Prometheus scrapes the metrics with a token, and the queries of the Grafana dashboard are valid
    Prometheus,
    /// Autobahn's WebSocket cases, directly and through the proxy; needs Python 2.7
    Autobahn,
    /// Autobahn's cases of compressed messages; only runs if named, because it takes almost half an hour
    Deflate,
    /// The Debian package in a booted Debian: install, upgrade, purge, and `rocknet service`; needs root
    Package,
    /// The Debian package of the desktop program in a booted Debian: files for desktops, polkit and purge; needs root
    DesktopPackage,
    /// The static program in a root folder without libraries; only runs if named, with `--program` or else a build with
    /// musl; needs root
    Static,
    /// slowhttptest: slow heads, bodies, ranges and readers; takes minutes
    Slow,
}

/// MiB in each direction of the streaming step.
const STREAMED_MIB: &str = "1024";

type Work = fn(&Path) -> Result<(), Failure>;

/// Steps that take seconds; `cargo xtask test` runs them too.
pub const CLIENTS: [(&str, Work); 10] = [
    ("browser", browser::run),
    ("trusted", trusted::run),
    ("websocket", websocket::run),
    ("curl", clients::curl),
    ("wrk", clients::wrk),
    ("ab", clients::ab),
    ("h2spec", h2spec::run),
    ("push", push::run),
    ("laravel", laravel::run),
    ("symfony", symfony::run),
];

pub fn run(options: &Options) -> Result<(), Failure> {
    packages::require(Purpose::Conform)?;
    let is_static = options.steps == [Step::Static];
    let program = match &options.program {
        Some(file) => file.canonicalize()?,
        None if is_static => crate::dist::build("rocknet", crate::dist::Libc::Musl)?,
        None => {
            run_command(cargo().args(["build", "--release", "--locked", "-p", "rocknet"]))?;
            crate::repository::target().join("release/rocknet")
        }
    };
    let is_selected = |step| options.steps.is_empty() || options.steps.contains(&step);
    let mut steps = Steps::default();
    let steps_in_order = [
        Step::Browser,
        Step::Trusted,
        Step::Websocket,
        Step::Curl,
        Step::Wrk,
        Step::Ab,
        Step::H2spec,
        Step::Push,
        Step::Laravel,
        Step::Symfony,
    ];
    for ((name, work), step) in CLIENTS.into_iter().zip(steps_in_order) {
        if is_selected(step) {
            steps.step(name, || work(&program));
        }
    }
    if is_selected(Step::Dashboard) {
        let pictures = options.pictures.as_deref();
        steps.step("dashboard", || dashboard::run(&program, pictures));
    }
    if is_selected(Step::Window) {
        packages::require(Purpose::Window)?;
        packages::require(Purpose::Desktop)?;
        let pictures = options.pictures.as_deref();
        let is_given = options.program.is_some();
        steps.remarked("window", || window::run(&program, is_given, pictures));
    }
    if is_selected(Step::Hpack) {
        steps.step("hpack", hpack::run);
    }
    if is_selected(Step::HttpCache) {
        let results = options.results.as_deref();
        steps.step("http-cache", || http_cache::run(&program, results));
    }
    if is_selected(Step::Auth) {
        let results = options.results.as_deref();
        steps.step("auth", || auth::run(&program, results));
    }
    if is_selected(Step::H3) {
        for (name, work) in http3::PARTS {
            steps.step(name, || work(&program));
        }
    }
    if is_selected(Step::Reload) {
        for (name, work) in reload::PARTS {
            steps.step(name, || work(&program));
        }
    }
    let applications: [(&'static str, Step, Work); 4] = [
        ("wordpress", Step::Wordpress, wordpress::run),
        ("phpmyadmin", Step::Phpmyadmin, phpmyadmin::run),
        ("grpc", Step::Grpc, grpc::run),
        ("upstreams", Step::Upstreams, upstreams::run),
    ];
    if applications.iter().any(|(_, step, _)| is_selected(*step)) {
        packages::require(Purpose::Applications)?;
    }
    for (name, step, work) in applications {
        if is_selected(step) {
            steps.step(name, || work(&program));
        }
    }
    if is_selected(Step::Prometheus) {
        packages::require(Purpose::Metrics)?;
        steps.step("prometheus", || prometheus::run(&program));
    }
    if is_selected(Step::Streaming) {
        steps.step("streaming", || {
            let mut test = cargo();
            test.args([
                "test",
                "--locked",
                "-p",
                "rocknet",
                "--test",
                "streaming",
                "--",
                "--nocapture",
            ]);
            run_command(
                test.env("ROCKNET_STREAMED", STREAMED_MIB)
                    .env("ROCKNET_PROGRAM", &program),
            )
        });
    }
    // If the step is named and Python 2.7 is missing, the step fails instead of being skipped.
    if options.steps.is_empty() && autobahn::wstest::python().is_none() {
        steps.skip("autobahn", autobahn::wstest::INSTALL_HINT);
    } else if is_selected(Step::Autobahn) {
        steps.step("autobahn", || autobahn::run(&program, Cases::Messages));
    }
    if options.steps.contains(&Step::Deflate) {
        steps.step("deflate", || autobahn::run(&program, Cases::Deflate));
    }
    if is_selected(Step::Package) {
        packages::require(Purpose::Machines)?;
        steps.step("package", || package::run(&program));
    }
    if is_selected(Step::DesktopPackage) {
        packages::require(Purpose::Machines)?;
        packages::require(Purpose::Window)?;
        let is_given = options.program.is_some();
        steps.step("desktop-package", || {
            package::run_desktop(&program, &window::program(&program, is_given)?)
        });
    }
    if options.steps.contains(&Step::Static) {
        steps.step("static", || static_program::run(&program));
    }
    if is_selected(Step::Slow) {
        for (name, option) in slow::ATTACKS {
            steps.step(name, || {
                slow::run(&program, option, options.seconds, options.connections)
            });
        }
    }
    steps.finish()
}
