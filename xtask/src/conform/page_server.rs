//! Server behind the proxy for pages whose scripts have to end before the browser prints them. The browser prints a
//! page once it has loaded, and such a page has loaded only after its picture has arrived. The server sends the picture
//! when the script reports its end.

use crate::Failure;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Timeout for the report: far longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Server for `/held/page`, `/held/report`, and all other paths, which are responded to after the report.
pub struct PageServer {
    pub port: u16,
}

impl PageServer {
    /// Starts a server of `page` on a free port. It serves one browser and runs until this process exits.
    pub fn start(page: &'static str) -> Result<PageServer, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let reported = Arc::new((Mutex::new(false), Condvar::new()));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let reported = Arc::clone(&reported);
                // The page shows the effect of an error, so the error itself is ignored.
                thread::spawn(move || answer(&stream, page, &reported).ok());
            }
        });
        Ok(PageServer { port })
    }
}

fn answer(stream: &TcpStream, page: &str, reported: &(Mutex<bool>, Condvar)) -> io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let line = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let (flag, changed) = reported;
    let lock = || flag.lock().unwrap_or_else(PoisonError::into_inner);
    let content = match line.split(' ').nth(1) {
        Some("/held/page") => page,
        Some("/held/report") => {
            *lock() = true;
            changed.notify_all();
            ""
        }
        _ => {
            drop(changed.wait_timeout_while(lock(), TIMEOUT, |reported| !*reported));
            ""
        }
    };
    let length = content.len();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length:";
    let mut stream = stream;
    stream.write_all(format!("{head} {length}\r\n\r\n{content}").as_bytes())
}
