//! Names of upstreams, looked up off the loop: one thread asks the system for all of them, again and again.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};

use super::upstream::{Looked, Upstream};

/// Between two looks at a name: what is moved by the DNS is found again in that time. The system's resolver, which has
/// caches of its own, does not tell how long an answer holds.
const AGAIN: Duration = Duration::from_secs(10);
/// After one that failed: who starts beside this server is mostly there a moment later.
const AGAIN_FAILED: Duration = Duration::from_secs(2);
/// The system asks three servers for up to ten seconds each.
const PATIENCE: Duration = Duration::from_secs(30);
/// Names asked for at once: each takes a thread while it lasts.
const MAX_AT_ONCE: usize = 16;

struct Watched {
    upstream: Weak<Upstream>,
    name: String,
    port: u16,
}

/// Looks a name up from now on, until nobody uses its upstream any more. Bounded by what configurations name.
pub fn watch(upstream: &Arc<Upstream>, name: &str, port: u16) {
    static WATCHER: OnceLock<Option<UnboundedSender<Watched>>> = OnceLock::new();
    let watched = Watched {
        upstream: Arc::downgrade(upstream),
        name: name.to_owned(),
        port,
    };
    let sent = WATCHER.get_or_init(start).as_ref().map(|watcher| watcher.send(watched));
    if !matches!(sent, Some(Ok(()))) {
        upstream.looked_up(Looked::Failed(
            "names cannot be looked up: no thread could be started".into(),
        ));
    }
}

fn start() -> Option<UnboundedSender<Watched>> {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(MAX_AT_ONCE)
        .build()
        .map_err(|error| tracing::error!("names of upstreams cannot be looked up: {error}"))
        .ok()?;
    let (sender, mut receiver) = unbounded_channel::<Watched>();
    let run = move || {
        runtime.block_on(async {
            while let Some(watched) = receiver.recv().await {
                tokio::spawn(look_after(watched));
            }
        });
    };
    let started = std::thread::Builder::new().name("rn-names".to_owned()).spawn(run);
    started.map(|_| sender).ok()
}

async fn look_after(watched: Watched) {
    let Watched { upstream, name, port } = watched;
    let mut told = false;
    while upstream.strong_count() > 0 {
        let found = match timeout(PATIENCE, tokio::net::lookup_host((name.as_str(), port))).await {
            Ok(Ok(addresses)) => Looked::Found(addresses.collect()),
            Ok(Err(error)) => Looked::Failed(error.to_string().into()),
            Err(_) => Looked::Failed("nobody answers".into()),
        };
        let again = match &found {
            Looked::Found(addresses) if !addresses.is_empty() => {
                told = false;
                AGAIN
            }
            Looked::Failed(error) if !told => {
                told = true;
                tracing::warn!(upstream = %name, "its address is not known: {error}");
                AGAIN_FAILED
            }
            _ => AGAIN_FAILED,
        };
        let found = match found {
            Looked::Found(addresses) if addresses.is_empty() => Looked::Failed("it has no address".into()),
            found => found,
        };
        match upstream.upgrade() {
            Some(upstream) => upstream.looked_up(found),
            None => return,
        }
        sleep(again).await;
    }
}
