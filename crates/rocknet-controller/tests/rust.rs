//! Tests controllers in Rust through the ABI of a library that is linked into this program.

#![cfg(feature = "host")]
#![allow(unsafe_code)] // calls the exported C function

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rocknet_controller::host::{self, CallError, Progress, RequestState};
use rocknet_controller::{Controller, Level, Library, Log, Outcome, Refused, Request, abi, export};

/// Number of `Shout` values that were dropped.
static ENDED: AtomicUsize = AtomicUsize::new(0);

/// State of the library. The controller `hello` sends the word, which shows that it gets this state.
struct App {
    word: String,
}

impl Library for App {
    fn init(log: Log<'_>) -> Outcome<App> {
        log.line(Level::Info, "initialized");
        let word = "kept".to_owned();
        Ok(App { word })
    }
}

/// Responds with the path, followed by names and values of all fields.
fn hello(app: &App, request: &mut Request<'_>) -> Outcome {
    let path = request.path();
    request.set_status(200)?;
    request.add_field("X-Word", &app.word)?;
    request.write(path)?;
    for (name, value) in request.fields() {
        request.write(name)?;
        request.write(value)?;
    }
    request.log(Level::Warn, "a line");
    Ok(())
}

fn panics(_: &App, _: &mut Request<'_>) -> Outcome {
    panic!("a controller that panics, for a test")
}

fn fails(_: &App, request: &mut Request<'_>) -> Outcome {
    Ok(request.add_field("no token", "x")?)
}

/// Sends the request body back in capitals, followed by a full stop, and panics at a piece `!`.
struct Shout(Vec<u8>);

impl Controller<App> for Shout {
    const TAKES: bool = true;
    const GIVES: bool = true;

    fn begin(_: &App, request: &mut Request<'_>) -> Outcome<Shout> {
        request.set_status(201)?;
        Ok(Shout(Vec::new()))
    }

    fn take(&mut self, _: &App, _: &mut Request<'_>, piece: Option<&[u8]>) -> Outcome {
        let piece = piece.unwrap_or(b".");
        assert!(piece != b"!", "a piece that panics, for a test");
        self.0.extend(piece.to_ascii_uppercase());
        Ok(())
    }

    fn give(&mut self, _: &App, _: &mut Request<'_>, room: &mut [u8]) -> Outcome<usize> {
        let size = room.len().min(self.0.len());
        for (place, byte) in room.iter_mut().zip(self.0.drain(..size)) {
            *place = byte;
        }
        Ok(size)
    }
}

impl Drop for Shout {
    fn drop(&mut self) {
        ENDED.fetch_add(1, Ordering::Relaxed);
    }
}

export! {
    App;
    "hello" => hello,
    "panics" => panics,
    "fails" => fails,
    "shout" => type Shout,
}

unsafe extern "C" {
    fn rocknet_library() -> *const abi::RawLibrary;
}

/// Request with a path and two fields.
struct TestRequest;

impl host::RequestView for TestRequest {
    fn read(&self, property: u32) -> Option<&[u8]> {
        (property == abi::PATH).then_some(b"/p ")
    }

    fn field(&self, name: &[u8], nth: usize) -> Option<&[u8]> {
        (name.eq_ignore_ascii_case(b"a") && nth == 0).then_some(b"1")
    }

    fn field_at(&self, index: usize) -> Option<(&[u8], &[u8])> {
        [(&b"A"[..], &b"1"[..]), (b"B", b"")].get(index).copied()
    }

    fn content(&self) -> &[u8] {
        b""
    }
}

/// Response that refuses field names with a space.
#[derive(Default)]
struct TestResponse {
    status: u32,
    body: Vec<u8>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    lines: RefCell<Vec<String>>,
}

impl host::ResponseWriter for TestResponse {
    fn set_status(&mut self, status: u32) -> Result<(), Refused> {
        self.status = status;
        Ok(())
    }

    fn add_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refused> {
        if name.contains(&b' ') {
            return Err(Refused::Invalid);
        }
        self.fields.push((name.to_vec(), value.to_vec()));
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Refused> {
        self.body.extend_from_slice(data);
        Ok(())
    }

    fn mark_invalid(&mut self) {
        self.status = 500;
    }

    fn log(&self, level: Level, line: &[u8]) {
        self.lines
            .borrow_mut()
            .push(format!("{level:?} {}", String::from_utf8_lossy(line)));
    }
}

fn silent(_: Level, _: &[u8]) {}

#[test]
fn functions_and_types_cross_the_abi_and_nothing_unwinds() {
    let library = Arc::new(host::LoadedLibrary::linked(rocknet_library, silent).expect("a library"));
    assert_eq!(
        library.names().collect::<Vec<_>>(),
        ["hello", "panics", "fails", "shout"]
    );
    let find = |name: &str| host::LoadedController::find(&library, name).expect(name);
    assert!(host::LoadedController::find(&library, "hell").is_none());

    let (mut response, mut state) = (TestResponse::default(), RequestState::default());
    let hello = find("hello");
    assert!(!hello.takes() && !hello.gives());
    assert_eq!(
        hello.answer(&TestRequest, &mut response, &mut state),
        Ok(Progress::Continue)
    );
    assert_eq!((response.status, &response.body[..]), (200, &b"/p A1B"[..]));
    assert_eq!(response.fields, [(b"X-Word".to_vec(), b"kept".to_vec())]);
    assert_eq!(response.lines.take(), ["Warn a line"]);

    assert!(matches!(find("panics").answer(&TestRequest, &mut response, &mut state), Err(CallError(code)) if code < 0));
    assert!(matches!(find("fails").answer(&TestRequest, &mut response, &mut state), Err(CallError(code)) if code < 0));
    assert_eq!(
        response.lines.take(),
        ["Error the status, name or value cannot be sent"]
    );

    let shout = find("shout");
    assert!(shout.takes() && shout.gives());
    assert_eq!(
        shout.answer(&TestRequest, &mut response, &mut state),
        Ok(Progress::Continue)
    );
    for piece in [Some(&b"abc"[..]), Some(b"d"), None] {
        assert_eq!(
            shout.take(&TestRequest, &mut response, &mut state, piece),
            Ok(Progress::Continue)
        );
    }
    let mut room = [0; 3];
    for expected in [&b"ABC"[..], b"D.", b""] {
        let given = shout
            .give(&TestRequest, &mut response, &mut state, &mut room)
            .expect("more");
        assert_eq!(&room[..given], expected);
    }
    assert!(shout.take(&TestRequest, &mut response, &mut state, Some(b"!")).is_err());
    assert_eq!(ENDED.load(Ordering::Relaxed), 0);
    // The state keeps its controller alive, which keeps the library loaded.
    drop((hello, shout, library));
    drop(state);
    assert_eq!(ENDED.load(Ordering::Relaxed), 1);
}
