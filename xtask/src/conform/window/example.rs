//! The server in the pictures: websites of each kind, other servers, PHP, visitors, and banned clients.

use super::account::Account;
use super::attackers::attack;
use crate::Failure;
use crate::command::output;
use rocknet_control::Status;
use rocknet_control::api::Request;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Home folder in the pictures.
const HOME: &str = "/home/ada";

/// Addresses of the servers that a website forwards requests to.
const UPSTREAMS: [&str; 2] = ["127.0.0.1:3000", "127.0.0.1:3001"];

/// Address of MariaDB.
const DATABASE: &str = "127.0.0.1:3306";

/// Response of the other servers.
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

/// The configuration.
const CONFIG: &str = r#"# Websites of Ada's computer.
ban = true

[server]
mode = "dev"
trusted_proxies = ["127.0.0.1", "::1"]

[log]
access = "stdout"
format = "json"

# The shop, in PHP.
[site."shop.localhost"]
root = "/home/ada/websites/shop"
php = "auto"
fallback = "/index.php"

[site."blog.localhost"]
root = "/home/ada/websites/blog"
php = "auto"

# Two development servers share the load.
[site."app.localhost"]
proxy = ["http://127.0.0.1:3000", "http://127.0.0.1:3001"]

[site."docs.localhost"]
root = "/home/ada/websites/docs"

[site.":8090"]
root = "/home/ada/websites/portfolio"

[site."archive.localhost"]
root = "/home/ada/websites/archive"
enabled = false
"#;

/// Files of the websites.
const FILES: [(&str, &str); 6] = [
    (
        "shop/index.php",
        "<?php for ($i = 0, $s = 0; $i < 20000; $i++) $s += $i; echo \"<h1>Shop</h1>\";",
    ),
    ("blog/index.php", "<?php echo \"<h1>Blog</h1>\";"),
    ("docs/index.html", "<h1>Docs</h1>"),
    ("portfolio/index.html", "<h1>Portfolio</h1>"),
    ("archive/index.html", "<h1>Archive</h1>"),
    ("recipes/index.php", "<?php echo \"<h1>Recipes</h1>\";"),
];

/// Addresses that visitors request, in each round.
const VISITS: [&str; 14] = [
    "https://shop.localhost:8443/",
    "https://shop.localhost:8443/cart",
    "https://shop.localhost:8443/product/teapot",
    "https://blog.localhost:8443/",
    "https://app.localhost:8443/",
    "https://app.localhost:8443/api/orders",
    "https://app.localhost:8443/api/orders/17",
    "https://docs.localhost:8443/",
    "https://shop.localhost:8443/style.css",
    "https://docs.localhost:8443/guide.html",
    "http://localhost:8090/",
    "http://localhost:8090/favicon.ico",
    "https://shop.localhost:8443/product/kettle",
    "https://blog.localhost:8443/index.php?page=2",
];

/// Replies of `systemctl` about the databases of the computer.
const SYSTEMCTL: &str = r#"#!/bin/sh
case "$*" in
  *rocknet.service*) exit 1 ;;
  *show*) printf 'Id=mariadb.service\nDescription=MariaDB 10.11 database server\nLoadState=loaded\nActiveState=active\n\nId=postgresql@15-main.service\nDescription=PostgreSQL Cluster 15-main\nLoadState=loaded\nActiveState=inactive\n' ;;
  *) exit 1 ;;
esac
"#;

/// The server with everything around it. The home folder is removed when the value is dropped.
pub struct Example {
    pub account: Account,
    ends: Arc<AtomicBool>,
    visitors: Option<JoinHandle<()>>,
    database: Option<TcpListener>,
    _home: Home,
}

struct Home;

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(HOME);
    }
}

impl Example {
    /// Creates the account, without a configuration.
    pub fn create(programs: [&Path; 2]) -> Result<Example, Failure> {
        fs::create_dir(HOME).map_err(|error| format!("the pictures need the home folder {HOME}: {error}"))?;
        let home = Home;
        let account = Account::create(Path::new(HOME), programs)?;
        account.script("systemctl", SYSTEMCTL)?;
        for (name, text) in FILES {
            account.write(&format!("websites/{name}"), text)?;
        }
        Ok(Example {
            account,
            ends: Arc::default(),
            visitors: None,
            database: None,
            _home: home,
        })
    }

    /// Starts the server with its websites, the other servers, and the visitors.
    pub fn serve(&mut self) -> Result<(), Failure> {
        for (number, address) in UPSTREAMS.into_iter().enumerate() {
            reply(&self.ends, address, Duration::from_millis(4 + 9 * number as u64))?;
        }
        // The port by which the window finds the address of MariaDB. It may be in use on this machine.
        self.database = TcpListener::bind(DATABASE).ok();
        self.account.write(".config/rocknet/rocknet.toml", CONFIG)?;
        self.account.start_server()?;
        attack(&self.account)?;
        let ends = Arc::clone(&self.ends);
        self.visitors = Some(thread::spawn(move || {
            for round in 0_usize.. {
                if ends.load(Relaxed) {
                    return;
                }
                visit(round);
            }
        }));
        Ok(())
    }

    /// Lets the browsers of the account trust the local CA, or takes that back.
    pub fn trust(&self, verb: &str) -> Result<(), Failure> {
        output(self.account.command("rocknet").args([verb, "--browsers"])).map(drop)
    }

    /// Returns true once visitors have been served.
    pub fn has_traffic(&self) -> bool {
        let status: Option<Status> = self.account.request(&Request::Status);
        status.is_some_and(|status| status.requests > 100)
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        if let Some(visitors) = self.visitors.take() {
            let _ = visitors.join();
        }
    }
}

/// Requests the addresses of a round: more in some rounds than in others.
fn visit(round: usize) {
    let wave = (round as f64 / 9.0).sin() + (round as f64 / 3.7).cos();
    let pause = 90.0 + 40.0 * wave;
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--insecure", "--max-time", "5"]);
    for address in VISITS.iter().cycle().skip(round * 5).take(7 + round % 5) {
        curl.args(["--output", "/dev/null", address]);
    }
    let _ = curl.stdout(Stdio::null()).stderr(Stdio::null()).status();
    thread::sleep(Duration::from_millis(pause as u64));
}

/// Starts a server that replies to each request after a delay.
fn reply(ends: &Arc<AtomicBool>, address: &str, delay: Duration) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).map_err(|error| format!("the pictures need {address}: {error}"))?;
    let ends = Arc::clone(ends);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            if ends.load(Relaxed) {
                return;
            }
            thread::spawn(move || {
                let mut head = [0; 4096];
                while stream.read(&mut head).is_ok_and(|count| count > 0) {
                    thread::sleep(delay);
                    if stream.write_all(RESPONSE).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(())
}
