//! A headless Chromium that is controlled by the DevTools protocol over pipes.

use crate::Failure;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Timeout of one command or condition: far longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Shell script that starts the browser, which reads commands from descriptor 3 and writes messages to descriptor 4.
const START: &str = "exec chromium \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null";

/// Options of the browser. The sandbox is off, because it does not run as root and the pages come from this repository.
const OPTIONS: &[&str] = &[
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--hide-scrollbars",
];

/// A browser with one page, killed when dropped.
pub struct DevTools {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    last_id: u64,
    /// ID of the session that is attached to the page; empty until then.
    session: String,
    /// Events of the page that no call has taken yet.
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

/// Width and height of a page in pixels.
#[derive(Clone, Copy)]
pub struct Viewport(pub u32, pub u32);

impl DevTools {
    /// Starts the browser with an empty profile and an empty page.
    pub fn start() -> Result<DevTools, Failure> {
        DevTools::start_in(None)
    }

    /// Starts the browser as [`start`](Self::start) does. `home`: the home folder with the root certificates that it
    /// trusts.
    pub fn start_in(home: Option<&Path>) -> Result<DevTools, Failure> {
        let profile = tempfile::tempdir()?;
        let mut command = Command::new("sh");
        command.args(["-c", START, "sh"]).args(OPTIONS);
        if let Some(home) = home {
            command.env("HOME", home);
        }
        let mut child = command
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(commands), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the browser has no pipes".into());
        };
        let (sender, messages) = channel();
        thread::spawn(move || {
            let parsed = BufReader::new(output)
                .split(0)
                .map_while(Result::ok)
                .filter_map(|message| serde_json::from_slice(&message).ok());
            for message in parsed {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = DevTools {
            child,
            commands,
            messages,
            last_id: 0,
            session: String::new(),
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", &attach)?;
        browser.session = attached["sessionId"].as_str().unwrap_or_default().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network", "Audits"] {
            browser.call(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(browser)
    }

    /// Sends a command and returns its result. Events that arrive before it are kept.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Result<Value, Failure> {
        self.last_id += 1;
        let id = self.last_id;
        let mut command = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            command["sessionId"] = json!(self.session);
        }
        self.commands.write_all(format!("{command}\0").as_bytes())?;
        loop {
            let message = self.receive(method)?;
            if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(format!("{method}: {error}").into()),
                    None => Ok(message["result"].clone()),
                };
            }
            self.events.push(message);
        }
    }

    /// Receives a message. `what`: the awaited command or event, for the error.
    fn receive(&self, what: &str) -> Result<Value, Failure> {
        let message = self.messages.recv_timeout(TIMEOUT);
        message.map_err(|_| format!("the browser does not respond: {what}").into())
    }

    /// Waits for an event and returns its parameters. Earlier events are kept.
    fn event(&mut self, method: &str) -> Result<Value, Failure> {
        let is_wanted = |event: &Value| event["method"] == method;
        let mut seen = 0;
        loop {
            if let Some(found) = self.events[seen..].iter().position(is_wanted) {
                return Ok(self.events.remove(seen + found)["params"].take());
            }
            seen = self.events.len();
            let message = self.receive(method)?;
            self.events.push(message);
        }
    }

    /// Loads a URL and waits until the page and its scripts are loaded.
    pub fn open(&mut self, url: &str) -> Result<(), Failure> {
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
        // A URL that differs from the current one only in its fragment loads nothing, and this call would time out.
        self.call("Page.navigate", &json!({ "url": url }))?;
        self.event("Page.loadEventFired").map(drop)
    }

    /// Loads a URL, and returns the text of the page. Fails unless the browser shows the page as secure.
    pub fn open_secure(&mut self, url: &str) -> Result<String, Failure> {
        self.open(url)?;
        let document = json!("Document");
        let is_document =
            |event: &&Value| event["method"] == "Network.responseReceived" && event["params"]["type"] == document;
        let response = self.events.iter().rev().find(is_document);
        let response = response.ok_or("the browser has received no page")?["params"]["response"].clone();
        if response["securityState"] != "secure" || response["status"] != 200 {
            return Err(format!("{url} is not shown as secure: {response}").into());
        }
        let text = self.evaluate("document.body.innerText.trim()")?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Evaluates an expression in the page, and waits for the promise that it returns.
    pub fn evaluate(&mut self, script: &str) -> Result<Value, Failure> {
        let parameters =
            json!({ "expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true });
        let result = self.call("Runtime.evaluate", &parameters)?;
        match result.get("exceptionDetails") {
            Some(details) => Err(format!("{script}: {details}").into()),
            None => Ok(result["result"]["value"].clone()),
        }
    }

    /// Waits until an expression is true.
    pub fn wait_for(&mut self, condition: &str) -> Result<(), Failure> {
        let deadline = Instant::now() + TIMEOUT;
        // The page itself checks the condition every 20 ms, for at most 5 s in each call. If the page is replaced
        // meanwhile, the call fails, and the loop tries again.
        let script = format!(
            "new Promise(done => {{ const look = () => {{ if ({condition}) done(true); else setTimeout(look, 20) }}; look() }})"
        );
        while Instant::now() < deadline {
            let limited = format!("Promise.race([{script}, new Promise(done => setTimeout(done, 5000, false))])");
            if self.evaluate(&limited).is_ok_and(|found| found == true) {
                return Ok(());
            }
        }
        let text = self.evaluate("location.href + '\\n' + document.body.innerText")?;
        Err(format!(
            "the page never fulfils `{condition}`: {}",
            text.as_str().unwrap_or_default()
        )
        .into())
    }

    /// Types text into the focused element.
    pub fn insert(&mut self, text: &str) -> Result<(), Failure> {
        self.call("Input.insertText", &json!({ "text": text })).map(drop)
    }

    /// Presses and releases a key such as `Tab` or `Enter`.
    pub fn press(&mut self, key: &str) -> Result<(), Failure> {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Space" => (32, " "),
            "Escape" => (27, ""),
            "ArrowDown" => (40, ""),
            other => return Err(format!("unknown key {other}").into()),
        };
        let name = if key == "Space" { " " } else { key };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": name, "code": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", &event)?;
        }
        Ok(())
    }

    /// Sets the size of the page.
    pub fn resize(&mut self, Viewport(width, height): Viewport) -> Result<(), Failure> {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &metrics).map(drop)
    }

    /// Selects the light or the dark colours.
    pub fn prefer(&mut self, scheme: &str) -> Result<(), Failure> {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", &features).map(drop)
    }

    /// Makes requests to these URLs fail. The patterns may contain `*`.
    pub fn block(&mut self, patterns: &[&str]) -> Result<(), Failure> {
        self.call("Network.setBlockedURLs", &json!({ "urls": patterns }))
            .map(drop)
    }

    /// Holds requests to these URLs until [`release`](Self::release) is called.
    pub fn hold(&mut self, patterns: &[&str]) -> Result<(), Failure> {
        let patterns: Vec<_> = patterns
            .iter()
            .map(|pattern| json!({ "urlPattern": pattern }))
            .collect();
        self.call("Fetch.enable", &json!({ "patterns": patterns })).map(drop)
    }

    /// Sends the requests that are held.
    pub fn release(&mut self) -> Result<(), Failure> {
        self.call("Fetch.disable", &json!({})).map(drop)
    }

    /// Writes a picture of the visible part of the page.
    pub fn picture(&mut self, file: &Path) -> Result<(), Failure> {
        let shot = self.call("Page.captureScreenshot", &json!({ "format": "png" }))?;
        // The page decodes the Base64, so this program needs no decoder.
        let script = "(text => Array.from(atob(text), one => one.charCodeAt(0)))";
        let data = shot["data"].as_str().unwrap_or_default();
        let bytes = self.evaluate(&format!("{script}('{data}')"))?;
        let bytes: Vec<u8> = serde_json::from_value(bytes)?;
        Ok(fs::write(file, bytes)?)
    }

    /// Takes the errors that the pages have caused since the last call: messages of the console, exceptions, and
    /// violations of the content security policy.
    pub fn errors(&mut self) -> Result<Vec<String>, Failure> {
        // The result of this call arrives after the events before it.
        self.evaluate("0")?;
        let errors = self.events.iter().filter(|event| is_error(event)).map(Value::to_string);
        let errors = errors.collect();
        self.events.clear();
        Ok(errors)
    }
}

fn is_error(event: &Value) -> bool {
    let parameters = &event["params"];
    match event["method"].as_str().unwrap_or_default() {
        "Runtime.exceptionThrown" => true,
        "Runtime.consoleAPICalled" => ["error", "warning", "assert"]
            .iter()
            .any(|kind| parameters["type"] == *kind),
        "Log.entryAdded" => parameters["entry"]["level"] == "error",
        "Audits.issueAdded" => parameters["issue"]["code"] == "ContentSecurityPolicyIssue",
        _ => false,
    }
}

impl Drop for DevTools {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_distinguished_from_other_events() {
        for (event, expected) in [
            (json!({ "method": "Runtime.exceptionThrown" }), true),
            (
                json!({ "method": "Runtime.consoleAPICalled", "params": { "type": "log" } }),
                false,
            ),
            (
                json!({ "method": "Runtime.consoleAPICalled", "params": { "type": "error" } }),
                true,
            ),
            (
                json!({ "method": "Log.entryAdded", "params": { "entry": { "level": "error" } } }),
                true,
            ),
            (
                json!({ "method": "Log.entryAdded", "params": { "entry": { "level": "info" } } }),
                false,
            ),
            (json!({ "method": "Page.loadEventFired" }), false),
        ] {
            assert_eq!(is_error(&event), expected, "{event}");
        }
    }
}
